import { consoleRoleNames, consoleRoles } from '../base/console-roles.ts'

/** What a role of the console is called wherever it may not be renamed. */
export const roleNameOf = (roleId: string): string | undefined =>
  consoleRoleNames.find((name) => consoleRoles[name].id === roleId)
