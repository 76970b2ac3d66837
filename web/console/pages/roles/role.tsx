import { useLocation } from 'wouter'
import { useRead } from '../../api/queries.ts'
import { Assignments } from '../../components/assignments.tsx'
import { ConfirmDeletion } from '../../components/confirm-deletion.tsx'
import { EntityForm } from '../../components/entity-form.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Badge, Loading, Page, type PageProps, Tabs } from '../../components/page.tsx'
import { RolePermissions } from './role-permissions.tsx'
import { holders } from './role-types.ts'

const Role = ({ params: { id = '', tab = 'permissions' } }: PageProps) => {
  const [, navigate] = useLocation()
  const { data, error } = useRead('getRole', { params: { id } })
  if (error) return <ProblemNotice error={error} />
  if (!data) return <Loading />
  const { body: role, etag } = data
  const isForPeople = role.type === 'User'
  const path = (name: string) => (name === 'permissions' ? `/roles/${id}` : `/roles/${id}/${name}`)
  return (
    <Page
      title={role.name}
      above={{ title: 'Roles', path: '/roles' }}
      lead={
        <>
          For {holders[role.type].toLowerCase()} · {role.description}{' '}
          {role.isDefault && <Badge>of every new user</Badge>}
        </>
      }
      actions={
        <ConfirmDeletion
          {...{ kind: 'role', name: role.name, operation: 'deleteRole', params: { id } }}
          onDone={() => navigate('/roles')}
        />
      }
    >
      <Tabs
        tabs={[
          { title: 'Permissions', path: path('permissions') },
          { title: holders[role.type], path: path('holders') },
          { title: 'Settings', path: path('settings') },
        ]}
        current={path(tab)}
      />
      {tab === 'permissions' && <RolePermissions roleId={id} />}
      {tab === 'holders' && isForPeople && (
        <Assignments
          {...{ title: 'People', kind: 'user', empty: 'Nobody has it.' }}
          list={{ operation: 'listRoleUsers', input: { params: { id }, query: { page: 1, page_size: 100 } } }}
          candidates={{ operation: 'listUsers', query: { excludeRoleId: id, enableCap: true } }}
          nameOf={({ name, username, primaryEmail, id: userId }) => name || username || primaryEmail || userId}
          detailOf={({ primaryEmail, username }) => primaryEmail ?? username}
          link={({ id: userId }) => `/users/${userId}`}
          add={{ operation: 'addRoleUsers', input: (userIds) => ({ params: { id }, body: { userIds } }) }}
          remove={{ operation: 'deleteRoleUser', input: (userId) => ({ params: { id, userId } }) }}
        />
      )}
      {tab === 'holders' && !isForPeople && (
        <Assignments
          {...{ title: 'Backends', kind: 'application', empty: 'No application has it.' }}
          list={{ operation: 'listRoleApplications', input: { params: { id }, query: { page: 1, page_size: 100 } } }}
          candidates={{ operation: 'listApplications', query: { excludeRoleId: id, types: 'MachineToMachine' } }}
          nameOf={({ name }) => name}
          link={({ id: applicationId }) => `/applications/${applicationId}`}
          add={{
            operation: 'addRoleApplications',
            input: (applicationIds) => ({ params: { id }, body: { applicationIds } }),
          }}
          remove={{
            operation: 'deleteRoleApplication',
            input: (applicationId) => ({ params: { id, applicationId } }),
          }}
        />
      )}
      {tab === 'settings' && (
        <EntityForm
          {...{ name: 'settings', operation: 'updateRole', params: { id }, record: role, etag }}
          groups={{
            'What it is': [
              { path: 'name', label: 'Name', isRequired: true },
              { path: 'description', label: 'Description', isRequired: true },
              ...(isForPeople
                ? [{ path: 'isDefault', label: 'Every new user gets it', kind: 'flag', empty: undefined } as const]
                : []),
            ],
          }}
        />
      )}
    </Page>
  )
}

export default Role
