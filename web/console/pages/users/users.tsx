import { nameOfPerson } from '../../api/session.tsx'
import { Allowed } from '../../components/allowed.tsx'
import { EmptyPage } from '../../components/empty-page.tsx'
import { EntityTable } from '../../components/entity-table.tsx'
import { searchFilter } from '../../components/filters.tsx'
import { LinkButton } from '../../components/link-button.tsx'
import { Badge, Page } from '../../components/page.tsx'
import { RelativeTime } from '../../components/time.tsx'

const Users = () => (
  <Page
    title="Users"
    lead="People who sign in to your applications, and to this console."
    actions={
      <Allowed operation="createUser">
        <LinkButton kind="main" icon="plus" path="/users/new">
          New user
        </LinkButton>
      </Allowed>
    }
  >
    <EntityTable
      title="Users"
      operation="listUsers"
      link={({ id }) => `/users/${id}`}
      filters={[searchFilter('Name, address, phone or id')]}
      columns={[
        {
          title: 'Name',
          cell: (user) => (
            <>
              {nameOfPerson(user)} {user.isSuspended && <Badge kind="bad">suspended</Badge>}
            </>
          ),
        },
        { title: 'Address', cell: ({ primaryEmail, primaryPhone }) => primaryEmail ?? primaryPhone },
        { title: 'User name', cell: ({ username }) => username, isMinor: true },
        { title: 'Signed in', cell: ({ lastSignInAt }) => <RelativeTime at={lastSignInAt} />, isMinor: true },
        { title: 'Since', cell: ({ createdAt }) => <RelativeTime at={createdAt} />, isMinor: true },
      ]}
      empty={
        <EmptyPage
          icon="users"
          title="No users yet"
          create={{
            ...{ operation: 'createUser', label: 'New user', path: '/users/new' },
            input: { body: { username: 'ada', primaryEmail: 'ada@example.com' } },
          }}
        >
          People appear here when they register, when an application makes them, or when you do.
        </EmptyPage>
      }
    />
  </Page>
)

export default Users
