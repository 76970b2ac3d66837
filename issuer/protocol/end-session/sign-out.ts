import { recordEvent } from '../../../events/outbox.ts'
import type { Database, Query } from '../../../platform/database/database.ts'
import { uuidv7 } from '../../../platform/ids.ts'
import type { Logger } from '../../../platform/logger.ts'
import { insertLog } from '../../base/audit/log-store.ts'
import type { RequestOrigin } from '../../base/client-address.ts'
import type { Recording } from '../../base/recording.ts'
import { voidOpenProofs } from '../../interaction/open-proofs-store.ts'
import { endAllOfUser, endSessionHere } from '../../tokens/authorizations/end.ts'
import { untilTold } from '../../tokens/logouts/until-told.ts'
import { forgetDevices } from '../../tokens/sessions/known-device-store.ts'
import { holdForLogout } from './end-session-store.ts'

/** Who signs out of what, and how that came about. */
export interface SignOut {
  session: { id: string; userId: string }
  clientId: string | undefined
  /** Digest of the cookie that pages of signing in belong to. */
  browser: Buffer | undefined
  /** Of all browsers and applications. */
  everywhere: boolean
  /** The person was asked. */
  wasAsked: boolean
  origin: RequestOrigin
}

export interface SignOutDependencies {
  database: Pick<Database, 'query' | 'transaction'>
  events: { wake(): void }
  logger: Logger
}

/**
 * Ends the session once: of parallel requests one has an effect, and one entry in the audit trail. Resolves when the
 * applications know, or a second later.
 */
export const createSignOut =
  ({ database, events, logger }: SignOutDependencies) =>
  async (signOut: SignOut): Promise<void> => {
    await database.transaction(async (query) => {
      if (await (signOut.everywhere ? endEverything : endHere)(query, signOut)) await insertLog(query, entryOf(signOut))
    })
    events.wake()
    await untilTold(database.query, signOut.session.userId, logger)
  }

const reason = 'logout'

const endHere = async (query: Query, { session, clientId, browser, origin }: SignOut) => {
  const { id: sessionId, userId } = session
  if (!(await holdForLogout(query, session))) return false
  await voidOpenProofs(query, userId, { everywhere: false, browser })
  return endSessionHere(recordingOf(query, origin), { sessionId, clientId, reason, endedBy: userId })
}

const endEverything = async (query: Query, { session, browser, origin }: SignOut) => {
  const { userId } = session
  if (!(await holdForLogout(query, session))) return false
  await voidOpenProofs(query, userId, { everywhere: true, browser })
  await forgetDevices(query, userId)
  await endAllOfUser(recordingOf(query, origin), { userId, reason, endedBy: userId })
  return true
}

const path = '/oidc/session/end'
const request = { method: 'POST', path, matchedRoute: path, params: {}, status: 200 }

const recordingOf = (trx: Query, origin: RequestOrigin): Recording => {
  // What ends at once is told as one.
  const told = { ...request, ...origin, correlationId: uuidv7() }
  return { trx, record: (event) => recordEvent(trx, { ...event, request: told }) }
}

const entryOf = ({ session, clientId, everywhere, wasAsked, origin }: SignOut) => ({
  key: 'Session.End',
  result: 'Success' as const,
  applicationId: clientId,
  userId: session.userId,
  payload: { ...origin, sessionId: session.id, everywhere, wasAsked },
})
