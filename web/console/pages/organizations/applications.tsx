import { AddSome } from '../../components/assignments.tsx'
import { EntityTable } from '../../components/entity-table.tsx'
import { searchFilter } from '../../components/filters.tsx'
import { Section } from '../../components/page.tsx'
import { RolesInOrganization } from './roles-in-organization.tsx'
import { TakeOut } from './take-out.tsx'

/** Backends that act in an organization by themselves. */
export const Applications = ({ organizationId: id }: { organizationId: string }) => (
  <Section
    title="Applications"
    lead="Machine-to-machine applications that get tokens for this organization."
    actions={
      <AddSome
        kind="application"
        candidates={{
          operation: 'listApplications',
          query: { types: 'MachineToMachine', excludeOrganizationId: id },
        }}
        nameOf={({ name }) => name}
        detailOf={({ description }) => description}
        add={{
          operation: 'addOrganizationApplications',
          input: (applicationIds) => ({ params: { id }, body: { applicationIds } }),
        }}
      />
    }
  >
    <EntityTable
      title="Applications"
      operation="listOrganizationApplications"
      params={{ id }}
      link={({ id: applicationId }) => `/applications/${applicationId}`}
      filters={[searchFilter('Name or id', 'q')]}
      columns={[
        { title: 'Name', cell: ({ name }) => name },
        {
          title: 'Roles here',
          cell: (application) => (
            <RolesInOrganization
              of={application.name}
              type="MachineToMachine"
              id={application.id}
              roles={application.organizationRoles}
              replace={{
                operation: 'replaceOrganizationApplicationRoles',
                input: (organizationRoleIds) => ({
                  params: { id, applicationId: application.id },
                  body: { organizationRoleIds },
                }),
              }}
            />
          ),
        },
        {
          title: 'Take out',
          cell: ({ id: applicationId, name }) => (
            <TakeOut name={name} operation="deleteOrganizationApplication" input={{ params: { id, applicationId } }} />
          ),
        },
      ]}
      empty={<p>No backend acts here by itself.</p>}
    />
  </Section>
)
