import { useLocation } from 'wouter'
import { useRead } from '../../api/queries.ts'
import { nameOfPerson } from '../../api/session.tsx'
import { Allowed } from '../../components/allowed.tsx'
import { Assignments } from '../../components/assignments.tsx'
import { ConfirmDeletion } from '../../components/confirm-deletion.tsx'
import { EntityId } from '../../components/copy.tsx'
import { EntityForm } from '../../components/entity-form.tsx'
import { LinkButton } from '../../components/link-button.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Badge, Loading, Page, type PageProps, Tabs } from '../../components/page.tsx'
import { RelativeTime } from '../../components/time.tsx'
import { Factors } from './factors.tsx'
import { History } from './history.tsx'
import { profileFields } from './profile-fields.ts'
import { Sessions } from './sessions.tsx'
import { Suspension } from './suspension.tsx'
import { UserOrganizations } from './user-organizations.tsx'

const tabs = {
  profile: 'Profile',
  roles: 'Roles',
  sessions: 'Sessions',
  factors: 'Factors',
  organizations: 'Organizations',
  history: 'History',
}

/** One person: who they are, what they may do, where they are signed in, and what happened to them. */
const User = ({ params: { id = '', tab = 'profile' } }: PageProps) => {
  const [, navigate] = useLocation()
  const { data, error } = useRead('getUser', { params: { userId: id } })
  if (error) return <ProblemNotice error={error} />
  if (!data) return <Loading />
  const { body: user, etag } = data
  const path = (name: string) => (name === 'profile' ? `/users/${id}` : `/users/${id}/${name}`)
  const name = nameOfPerson(user)
  return (
    <Page
      title={name}
      above={{ title: 'Users', path: '/users' }}
      lead={
        <>
          <EntityId id={id} /> · signed in <RelativeTime at={user.lastSignInAt} />{' '}
          {user.isSuspended && <Badge kind="bad">suspended</Badge>}
        </>
      }
      actions={
        <>
          <Allowed operation="createSubjectToken">
            <LinkButton icon="mask" path={`/impersonations/new?user=${id}`}>
              Act for them
            </LinkButton>
          </Allowed>
          <Suspension user={user} />
          <ConfirmDeletion
            {...{ kind: 'user', name, operation: 'deleteUser', params: { userId: id } }}
            onDone={() => navigate('/users')}
          />
        </>
      }
    >
      <Tabs tabs={Object.entries(tabs).map(([key, title]) => ({ title, path: path(key) }))} current={path(tab)} />
      {tab === 'profile' && (
        <EntityForm
          {...{ name: 'profile', operation: 'updateUser', params: { userId: id }, record: user, etag }}
          groups={{ Profile: profileFields }}
        />
      )}
      {tab === 'roles' && (
        <Assignments
          {...{ title: 'Roles', kind: 'role', empty: 'Nothing: tokens of this person carry no permission.' }}
          lead="What this person may do with your APIs, everywhere."
          list={{ operation: 'listUserRoles', input: { params: { userId: id }, query: { page: 1, page_size: 100 } } }}
          candidates={{ operation: 'listRoles', query: { type: 'User', excludeUserId: id } }}
          nameOf={({ name: role }) => role}
          detailOf={({ description }) => description}
          link={({ id: roleId }) => `/roles/${roleId}`}
          add={{ operation: 'addUserRoles', input: (roleIds) => ({ params: { userId: id }, body: { roleIds } }) }}
          remove={{ operation: 'deleteUserRole', input: (roleId) => ({ params: { userId: id, roleId } }) }}
        />
      )}
      {tab === 'sessions' && <Sessions userId={id} />}
      {tab === 'factors' && <Factors userId={id} hasPassword={user.hasPassword} />}
      {tab === 'organizations' && <UserOrganizations userId={id} />}
      {tab === 'history' && <History userId={id} />}
    </Page>
  )
}

export default User
