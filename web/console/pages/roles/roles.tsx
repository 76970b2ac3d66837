import { searchFilter } from '../../components/filters.tsx'
import { ListPage } from '../../components/list-page.tsx'
import { Badge } from '../../components/page.tsx'
import { holders } from './role-types.ts'

const Roles = () => (
  <ListPage
    title="Roles"
    lead="Permissions of your APIs under a name. People and backends have them everywhere, not in one organization."
    icon="role"
    create={{
      ...{ operation: 'createRole', label: 'New role', path: '/roles/new' },
      input: { body: { name: 'Order reader', description: 'Reads orders' } },
    }}
    operation="listRoles"
    link={({ id }) => `/roles/${id}`}
    filters={[searchFilter('Name or description'), { kind: 'choice', name: 'type', label: 'For', options: holders }]}
    columns={[
      { title: 'Name', cell: ({ name }) => name },
      { title: 'Description', cell: ({ description }) => description, isMinor: true },
      {
        title: 'For',
        cell: ({ type, isDefault }) => (
          <>
            {holders[type]} {isDefault && <Badge>of every new user</Badge>}
          </>
        ),
      },
      { title: 'Has it', cell: ({ usersCount, applicationsCount }) => usersCount + applicationsCount },
    ]}
    empty="A role carries permissions of your APIs. Tokens of whoever has it may carry them too."
  />
)

export default Roles
