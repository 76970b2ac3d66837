import { Allowed } from '../../components/allowed.tsx'
import { EmptyPage } from '../../components/empty-page.tsx'
import { EntityTable } from '../../components/entity-table.tsx'
import { searchFilter } from '../../components/filters.tsx'
import { LinkButton } from '../../components/link-button.tsx'
import { Badge, Page } from '../../components/page.tsx'
import { holders } from './role-types.ts'

const Roles = () => (
  <Page
    title="Roles"
    lead="Permissions of your APIs under a name. People and backends have them everywhere, not in one organization."
    actions={
      <Allowed operation="createRole">
        <LinkButton kind="main" icon="plus" path="/roles/new">
          New role
        </LinkButton>
      </Allowed>
    }
  >
    <EntityTable
      title="Roles"
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
      empty={
        <EmptyPage
          icon="role"
          title="No roles yet"
          create={{
            ...{ operation: 'createRole', label: 'New role', path: '/roles/new' },
            input: { body: { name: 'Order reader', description: 'Reads orders' } },
          }}
        >
          A role carries permissions of your APIs. Tokens of whoever has it may carry them too.
        </EmptyPage>
      }
    />
  </Page>
)

export default Roles
