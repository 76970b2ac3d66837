import type { Query } from '../../platform/database/database.ts'
import { randomToken } from '../../platform/ids.ts'
import { type ConsoleRoleName, consoleRoles } from '../base/console-roles.ts'
import { insertInvitation } from './invitation-store.ts'

/** In the fragment, which browsers send to nobody: no log and no proxy has it. */
const linkOf = (consoleUrl: string, token: string): string => `${consoleUrl}/console/setup#${token}`

/**
 * A link that makes whoever opens it a member of the console, once, within half an hour. The database keeps its digest
 * only.
 */
export const inviteToConsole = async (
  query: Query,
  { role, consoleUrl }: { role: ConsoleRoleName; consoleUrl: string },
): Promise<string> => {
  const token = randomToken()
  await insertInvitation(query, { token, roleId: consoleRoles[role].id, isFirst: false })
  return linkOf(consoleUrl, token)
}

/** The same for the first owner. Undefined: there is one. */
export const inviteFirstOwner = async (query: Query, consoleUrl: string): Promise<string | undefined> => {
  const token = randomToken()
  const isMade = await insertInvitation(query, { token, roleId: consoleRoles.owner.id, isFirst: true })
  return isMade ? linkOf(consoleUrl, token) : undefined
}
