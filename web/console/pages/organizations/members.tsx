import { AddSome } from '../../components/assignments.tsx'
import { EntityTable } from '../../components/entity-table.tsx'
import { searchFilter } from '../../components/filters.tsx'
import { Section } from '../../components/page.tsx'
import { nameOfUser } from './name-of-user.ts'
import { RolesInOrganization } from './roles-in-organization.tsx'
import { TakeOut } from './take-out.tsx'

/** The people of an organization, with their roles in it. */
export const Members = ({ organizationId: id }: { organizationId: string }) => (
  <Section
    title="Members"
    lead="Their roles here are in their tokens for this organization, and in no others."
    actions={
      <AddSome
        kind="member"
        candidates={{ operation: 'listUsers', query: { excludeOrganizationId: id, enableCap: true } }}
        nameOf={nameOfUser}
        detailOf={({ primaryEmail, username }) => primaryEmail ?? username}
        add={{ operation: 'addOrganizationUsers', input: (userIds) => ({ params: { id }, body: { userIds } }) }}
      />
    }
  >
    <EntityTable
      title="Members"
      operation="listOrganizationUsers"
      params={{ id }}
      link={({ id: userId }) => `/users/${userId}`}
      filters={[searchFilter('Name, address or id', 'q')]}
      columns={[
        { title: 'Name', cell: nameOfUser },
        { title: 'Address', cell: ({ primaryEmail, username }) => primaryEmail ?? username, isMinor: true },
        {
          title: 'Roles here',
          cell: (user) => (
            <RolesInOrganization
              of={nameOfUser(user)}
              type="User"
              id={user.id}
              roles={user.organizationRoles}
              replace={{
                operation: 'replaceOrganizationUserRoles',
                input: (organizationRoleIds) => ({ params: { id, userId: user.id }, body: { organizationRoleIds } }),
              }}
            />
          ),
        },
        {
          title: 'Take out',
          cell: (user) => (
            <TakeOut
              name={nameOfUser(user)}
              operation="deleteOrganizationUser"
              input={{ params: { id, userId: user.id } }}
            />
          ),
        },
      ]}
      empty={<p>Nobody belongs to it yet: add members here, or let people join by their address or enterprise.</p>}
    />
  </Section>
)
