import { nameOfPerson } from '../../api/session.tsx'
import { searchFilter } from '../../components/filters.tsx'
import { ListPage } from '../../components/list-page.tsx'
import { Badge } from '../../components/page.tsx'
import { RelativeTime } from '../../components/time.tsx'

const Users = () => (
  <ListPage
    title="Users"
    lead="People who sign in to your applications, and to this console."
    icon="users"
    create={{
      ...{ operation: 'createUser', label: 'New user', path: '/users/new' },
      input: { body: { username: 'ada', primaryEmail: 'ada@example.com' } },
    }}
    operation="listUsers"
    isLong
    link={({ id }) => `/users/${id}`}
    filters={[searchFilter('Name, address, phone or id')]}
    columns={[
      {
        title: 'Name',
        cell: (user) => (
          <>
            <bdi>{nameOfPerson(user)}</bdi> {user.isSuspended && <Badge kind="bad">suspended</Badge>}
          </>
        ),
      },
      { title: 'Address', cell: ({ primaryEmail, primaryPhone }) => primaryEmail ?? primaryPhone },
      { title: 'User name', cell: ({ username }) => username, isMinor: true },
      { title: 'Signed in', cell: ({ lastSignInAt }) => <RelativeTime at={lastSignInAt} />, isMinor: true },
      { title: 'Since', cell: ({ createdAt }) => <RelativeTime at={createdAt} />, isMinor: true },
    ]}
    empty="People appear here when they register, when an application makes them, or when you do."
  />
)

export default Users
