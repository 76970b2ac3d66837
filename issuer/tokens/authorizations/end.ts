import type { Transaction } from '../../../platform/database/database.ts'
import { type NewRevocation, revoke } from '../revocations/revocation-store.ts'
import type { EndReason } from '../sessions/session.ts'
import {
  type Ending,
  endAuthorizationsById,
  endAuthorizationsOfClient,
  endAuthorizationsOfSession,
  endAuthorizationsOfUser,
  endOneSession,
  endSessionsOf,
} from './end-store.ts'

/**
 * What ends what. Each of these runs in the caller's transaction and writes the revocation feed, so that gateways
 * refuse the tokens within a second; call them last (see `revoke`).
 */

export const revocationsOfAuthorizations = (ids: readonly string[]): NewRevocation[] =>
  ids.map((value) => ({ kind: 'sid', value }))

/**
 * Signing out here: the session, what the client that asked got in it, and what others got without offline access.
 * False when the session had ended.
 */
export const endSessionHere = async (
  trx: Transaction,
  { sessionId, clientId, ...ending }: { sessionId: string; clientId?: string | undefined } & Ending,
): Promise<boolean> => {
  const ended = await endOneSession(trx, sessionId, ending)
  const over = await endAuthorizationsOfSession(trx, { sessionId, all: false, clientId }, ending.reason)
  await revoke(trx, revocationsOfAuthorizations(over))
  return ended
}

/** A session with all that came of it, offline access too. False when it had ended. */
export const endSessionWhole = async (
  trx: Transaction,
  { sessionId, ...ending }: { sessionId: string } & Ending,
): Promise<boolean> => {
  const ended = await endOneSession(trx, sessionId, ending)
  const over = await endAuthorizationsOfSession(trx, { sessionId, all: true, clientId: undefined }, ending.reason)
  await revoke(trx, revocationsOfAuthorizations(over))
  return ended
}

/** Everything of a person, offline access too; but for one session, where that is spared. */
export const endAllOfUser = async (
  trx: Transaction,
  { userId, exceptSessionId, ...ending }: { userId: string; exceptSessionId?: string | undefined } & Ending,
): Promise<void> => {
  await endSessionsOf(trx, { userId, exceptSessionId }, ending)
  const over = await endAuthorizationsOfUser(trx, { userId, exceptSessionId }, ending.reason)
  await revoke(trx, revocationsOfAuthorizations(over))
}

/** These authorizations, or all that a client has of a person. Answers how many had not ended. */
export const endAuthorizations = async (
  trx: Transaction,
  which: { ids: readonly string[] } | { userId: string; clientId: string },
  reason: EndReason,
): Promise<number> => {
  const over =
    'ids' in which
      ? await endAuthorizationsById(trx, which.ids, reason)
      : await endAuthorizationsOfClient(trx, which, reason)
  await revoke(trx, revocationsOfAuthorizations(over))
  return over.length
}
