import { Assignments } from '../../components/assignments.tsx'

/** The people of one role. */
export const RoleMembers = ({ title, lead, roleId: id }: { title: string; lead: string; roleId: string }) => (
  <Assignments
    {...{ title, lead, kind: `member of ${title}` }}
    list={{ operation: 'listRoleUsers', input: { params: { id }, query: { page: 1, page_size: 100 } } }}
    candidates={{ operation: 'listUsers', query: { excludeRoleId: id, enableCap: true } }}
    nameOf={({ name, username, primaryEmail, id: userId }) => name || username || primaryEmail || userId}
    detailOf={({ primaryEmail, username }) => primaryEmail ?? username}
    link={({ id: userId }) => `/users/${userId}`}
    add={{ operation: 'addRoleUsers', input: (userIds) => ({ params: { id }, body: { userIds } }) }}
    remove={{ operation: 'deleteRoleUser', input: (userId) => ({ params: { id, userId } }) }}
    empty="Nobody."
  />
)
