import type { Database, Query } from '../../../platform/database/database.ts'
import { insertLog } from '../../base/audit/log-store.ts'
import type { RequestOrigin } from '../../base/client-address.ts'
import { endAllOfUser, endSessionHere } from '../../tokens/authorizations/end.ts'
import { forgetDevices } from '../../tokens/sessions/known-device-store.ts'
import { holdForLogout, voidOpenProofs } from './end-session-store.ts'

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

/** Ends the session once: of parallel requests one has an effect, and one entry in the audit trail. */
export const createSignOut =
  ({ database }: { database: Pick<Database, 'transaction'> }) =>
  (signOut: SignOut): Promise<void> =>
    database.transaction(async (query) => {
      if (await (signOut.everywhere ? endEverything : endHere)(query, signOut)) await insertLog(query, entryOf(signOut))
    })

const reason = 'logout'

const endHere = async (query: Query, { session, clientId, browser }: SignOut) => {
  const { id: sessionId, userId } = session
  if (!(await holdForLogout(query, session))) return false
  await voidOpenProofs(query, userId, { everywhere: false, browser })
  return endSessionHere(query, { sessionId, clientId, reason, endedBy: userId })
}

const endEverything = async (query: Query, { session, browser }: SignOut) => {
  const { userId } = session
  if (!(await holdForLogout(query, session))) return false
  await voidOpenProofs(query, userId, { everywhere: true, browser })
  await forgetDevices(query, userId)
  await endAllOfUser(query, { userId, reason, endedBy: userId })
  return true
}

const entryOf = ({ session, clientId, everywhere, wasAsked, origin }: SignOut) => ({
  key: 'Session.End',
  result: 'Success' as const,
  applicationId: clientId,
  userId: session.userId,
  payload: { ...origin, sessionId: session.id, everywhere, wasAsked },
})
