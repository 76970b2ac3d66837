import type { IncomingMessage } from 'node:http'
import type { Query } from '../../platform/database/database.ts'
import { problem } from '../base/errors/problems.ts'
import type { Caller } from '../base/route.ts'
import { holdsResourceOfSession } from '../tokens/impersonations/session-resource-store.ts'

/**
 * `Surrogate-Session`: an API that changes something because of a request that it got says in which session that was,
 * by the claim `sid` of the token. Throws 403 unless the session goes on and is for a resource of the caller's.
 */
export const namedSession = async (
  query: Query,
  { headers }: Pick<IncomingMessage, 'headers'>,
  { clientId }: Caller,
): Promise<string | undefined> => {
  const sid = headers['surrogate-session']
  if (sid === undefined) return undefined
  if (typeof sid !== 'string' || !/^[\w-]{1,21}$/.test(sid)) {
    throw problem('guard.invalid_input', { detail: 'Surrogate-Session: must be the claim sid of a token' })
  }
  // One answer for all of them, so that nobody learns which sessions there are.
  if (!(await holdsResourceOfSession(query, sid, clientId))) throw problem('auth.session_not_allowed')
  return sid
}
