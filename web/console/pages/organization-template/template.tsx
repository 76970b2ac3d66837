import { Allowed } from '../../components/allowed.tsx'
import { Button } from '../../components/button.tsx'
import { CreateForm } from '../../components/create-form.tsx'
import { Dialog, useDialog } from '../../components/dialog.tsx'
import { EmptyPage } from '../../components/empty-page.tsx'
import { EntityTable } from '../../components/entity-table.tsx'
import { searchFilter } from '../../components/filters.tsx'
import { announce } from '../../components/notice.tsx'
import { Badge, Page, Tabs } from '../../components/page.tsx'
import { roleFields, scopeFields, typeLabels } from './template-fields.ts'

const path = '/organization-template'
const tabs = [
  { title: 'Roles', path },
  { title: 'Permissions', path: `${path}/permissions` },
]

/** What all organizations have in common: the roles of their members, and the permissions of those. */
const TemplatePage = ({ params: { tab } }: { params: { tab?: string } }) => (
  <Page
    title="Organization template"
    above={{ title: 'Organizations', path: '/organizations' }}
    lead="Every organization has these roles and permissions; a member has them in each organization apart."
    actions={tab === 'permissions' ? <NewScope /> : <NewRole />}
  >
    <Tabs tabs={tabs} current={tab === 'permissions' ? `${path}/permissions` : path} />
    {tab === 'permissions' ? <Scopes /> : <Roles />}
  </Page>
)

const Roles = () => (
  <EntityTable
    title="Organization roles"
    operation="listOrganizationRoles"
    link={({ id }) => `${path}/roles/${id}`}
    filters={[searchFilter('Name or id', 'q')]}
    columns={[
      { title: 'Name', cell: ({ name }) => name },
      { title: 'For', cell: ({ type }) => typeLabels[type] },
      {
        title: 'Permissions',
        cell: ({ scopes, resourceScopes }) =>
          [...scopes, ...resourceScopes].map(({ id, name }) => <Badge key={id}>{name}</Badge>),
      },
      { title: 'Description', cell: ({ description }) => description, isMinor: true },
    ]}
    empty={
      <EmptyPage icon="role" title="No organization roles yet">
        A role says what a member may do in an organization: Admin, Member, Guest. Make one here, then give it to
        members on the page of the organization.
      </EmptyPage>
    }
  />
)

const Scopes = () => (
  <EntityTable
    title="Organization permissions"
    operation="listOrganizationScopes"
    link={({ id }) => `${path}/permissions/${id}`}
    filters={[searchFilter('Name or id', 'q')]}
    columns={[
      { title: 'Name', cell: ({ name }) => <code>{name}</code> },
      { title: 'Description', cell: ({ description }) => description },
    ]}
    empty={
      <EmptyPage icon="check" title="No organization permissions yet">
        A permission is a word that your application looks for in a token for an organization:{' '}
        <code>invite:member</code>. Permissions of your APIs can be given to organization roles too.
      </EmptyPage>
    }
  />
)

const NewRole = () => {
  const dialog = useDialog('new-role')
  return (
    <>
      <Allowed operation="createOrganizationRole">
        <Button kind="main" icon="plus" onPress={dialog.open}>
          New role
        </Button>
      </Allowed>
      <Dialog title="New organization role" isOpen={dialog.isOpen} onClose={dialog.close}>
        <CreateForm
          name="new role"
          operation="createOrganizationRole"
          fields={roleFields}
          initial={{ type: 'User' }}
          label="Create role"
          onDone={({ name }) => {
            announce(`The role ${name} is made.`)
            dialog.close()
          }}
        />
      </Dialog>
    </>
  )
}

const NewScope = () => {
  const dialog = useDialog('new-permission')
  return (
    <>
      <Allowed operation="createOrganizationScope">
        <Button kind="main" icon="plus" onPress={dialog.open}>
          New permission
        </Button>
      </Allowed>
      <Dialog title="New organization permission" isOpen={dialog.isOpen} onClose={dialog.close}>
        <CreateForm
          name="new permission"
          operation="createOrganizationScope"
          fields={scopeFields}
          label="Create permission"
          onDone={({ name }) => {
            announce(`The permission ${name} is made.`)
            dialog.close()
          }}
        />
      </Dialog>
    </>
  )
}

export default TemplatePage
