import { EntityTable } from '../../components/entity-table.tsx'

/** Where the person is a member, and as what. */
export const UserOrganizations = ({ userId }: { userId: string }) => (
  <EntityTable
    title="Organizations"
    operation="listUserOrganizations"
    params={{ userId }}
    link={({ id }) => `/organizations/${id}`}
    columns={[
      { title: 'Organization', cell: ({ name }) => name },
      { title: 'Roles there', cell: ({ organizationRoles }) => organizationRoles.map(({ name }) => name).join(', ') },
    ]}
    empty={<p>They are a member of no organization.</p>}
  />
)
