import { Assignments } from '../../components/assignments.tsx'

/** What a backend may do by itself: the roles that carry its permissions. */
export const Roles = ({ applicationId: id }: { applicationId: string }) => (
  <Assignments
    title="Roles"
    lead="Its permissions. A token has those of them that it asks for."
    kind="role"
    list={{ operation: 'listApplicationRoles', input: { params: { id } } }}
    candidates={{ operation: 'listRoles', query: { type: 'MachineToMachine', excludeApplicationId: id } }}
    nameOf={({ name }) => name}
    detailOf={({ description }) => description}
    link={({ id: roleId }) => `/roles/${roleId}`}
    add={{ operation: 'addApplicationRoles', input: (roleIds) => ({ params: { id }, body: { roleIds } }) }}
    remove={{ operation: 'deleteApplicationRole', input: (roleId) => ({ params: { id, roleId } }) }}
    empty="It has no role, so it gets no permission."
  />
)
