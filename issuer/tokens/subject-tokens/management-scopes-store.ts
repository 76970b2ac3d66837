/**
 * An SQL expression: the permissions of the Management API that roles of a user hold. They are in no token that anybody
 * gets for the user; the impersonation policy asks about them.
 */
export const managementScopesOf = (user: string): string =>
  `ARRAY(SELECT DISTINCT s.name FROM user_roles ur JOIN role_scopes rs ON rs.role_id = ur.role_id
     JOIN scopes s ON s.id = rs.scope_id JOIN resources r ON r.id = s.resource_id
   WHERE ur.user_id = ${user} AND r.is_management ORDER BY s.name)`
