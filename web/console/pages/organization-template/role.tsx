import { useLocation } from 'wouter'
import { useRead } from '../../api/queries.ts'
import { Assignments } from '../../components/assignments.tsx'
import { ConfirmDeletion } from '../../components/confirm-deletion.tsx'
import { EntityId } from '../../components/copy.tsx'
import { EntityForm } from '../../components/entity-form.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Loading, Page } from '../../components/page.tsx'
import { ResourcePermissions } from './resource-permissions.tsx'
import { roleSettings, typeLabels } from './template-fields.ts'

const above = { title: 'Organization template', path: '/organization-template' }

/** One role of all organizations, and what it allows. */
const RolePage = ({ params: { id = '' } }: { params: { id?: string } }) => {
  const [, navigate] = useLocation()
  const { data, error } = useRead('getOrganizationRole', { params: { id } })
  if (error) return <ProblemNotice error={error} />
  if (!data) return <Loading />
  const { body: role, etag } = data
  return (
    <Page
      title={role.name}
      above={above}
      lead={
        <>
          A role for {typeLabels[role.type].toLowerCase()} in every organization · <EntityId id={id} />
        </>
      }
      actions={
        <ConfirmDeletion
          kind="organization role"
          name={role.name}
          operation="deleteOrganizationRole"
          params={{ id }}
          onDone={() => navigate(above.path)}
        />
      }
    >
      <Assignments
        title="Permissions in the organization"
        kind="permission"
        list={{ operation: 'listOrganizationRoleScopes', input: { params: { id } } }}
        candidates={{ operation: 'listOrganizationScopes', searchedBy: 'q' }}
        nameOf={({ name }) => name}
        detailOf={({ description }) => description}
        add={{
          operation: 'addOrganizationRoleScopes',
          input: (organizationScopeIds) => ({ params: { id }, body: { organizationScopeIds } }),
        }}
        remove={{
          operation: 'deleteOrganizationRoleScope',
          input: (organizationScopeId) => ({ params: { id, organizationScopeId } }),
        }}
        empty="It carries none."
      />
      <ResourcePermissions roleId={id} />
      <EntityForm
        {...{ name: 'settings', operation: 'updateOrganizationRole', params: { id } }}
        {...{ record: role, etag, groups: { 'What it is': roleSettings } }}
      />
    </Page>
  )
}

export default RolePage
