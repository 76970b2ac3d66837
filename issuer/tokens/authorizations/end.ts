import type { Recording } from '../../base/recording.ts'
import { endSessionsOfActors } from '../impersonations/impersonation-store.ts'
import { sessionEnded, sessionRevocation } from '../impersonations/operations.ts'
import { type NewRevocation, revoke } from '../revocations/revocation-store.ts'
import type { EndReason } from '../sessions/session.ts'
import {
  type EndedSession,
  type Ending,
  endAuthorizationsById,
  endAuthorizationsOfClient,
  endAuthorizationsOfSession,
  endAuthorizationsOfUser,
  endOneSession,
  endSessionsOf,
  holdUser,
} from './end-store.ts'

/**
 * What ends what. Each of these runs in the caller's transaction and writes the revocation feed, so that gateways
 * refuse the tokens within a second; call them last (see `revoke`). Impersonations end with what their actors had
 * signed in to. Those that end sessions record `Session.Ended` for each, so the caller holds the row of the user:
 * whoever suspends somebody records before sessions are locked. Sessions that expire are recorded by nobody, because
 * their end was known from the beginning.
 */

const revocationsOfAuthorizations = (ids: readonly string[]): NewRevocation[] =>
  ids.map((value) => ({ kind: 'sid', value }))

const recordEnded = async (
  { record }: Recording,
  sessions: readonly EndedSession[],
  { reason, endedBy }: Ending,
): Promise<void> => {
  for (const { id: sessionId, userId } of sessions) {
    const extras = { sessionId, userId, reason, endedBy }
    await record({ type: 'Session.Ended', entity: { kind: 'user', id: userId }, data: null, extras })
  }
}

/**
 * What actors opened ends with their authorizations, and with the sessions that those came of. Answers what is to be
 * revoked: the authorizations too.
 */
export const endActing = async (
  { trx, record }: Recording,
  over: { authorizations: readonly string[]; sessions: readonly string[] },
  endedBy: string | undefined,
): Promise<NewRevocation[]> => {
  const impersonations = await endSessionsOfActors(trx, over, endedBy)
  for (const session of impersonations) await record(sessionEnded(session))
  return [...revocationsOfAuthorizations(over.authorizations), ...impersonations.map(sessionRevocation)]
}

/**
 * Signing out here: the session, what the client that asked got in it, and what others got without offline access.
 * False when the session had ended.
 */
export const endSessionHere = async (
  recording: Recording,
  { sessionId, clientId, ...ending }: { sessionId: string; clientId?: string | undefined } & Ending,
): Promise<boolean> => {
  const { trx } = recording
  const ended = await endOneSession(trx, sessionId, ending)
  const over = await endAuthorizationsOfSession(trx, { sessionId, all: false, clientId }, ending.reason)
  await recordEnded(recording, ended, ending)
  await revoke(trx, await endActing(recording, { authorizations: over, sessions: [sessionId] }, ending.endedBy))
  return ended.length > 0
}

/** A session with all that came of it, offline access too. False when it had ended. */
export const endSessionWhole = async (
  recording: Recording,
  { sessionId, ...ending }: { sessionId: string } & Ending,
): Promise<boolean> => {
  const { trx } = recording
  const ended = await endOneSession(trx, sessionId, ending)
  const over = await endAuthorizationsOfSession(trx, { sessionId, all: true, clientId: undefined }, ending.reason)
  await recordEnded(recording, ended, ending)
  await revoke(trx, await endActing(recording, { authorizations: over, sessions: [sessionId] }, ending.endedBy))
  return ended.length > 0
}

/** As `endAllOfUser`, but for the feed and for impersonations: answers what ended. */
export const endAccessOfUser = async (
  recording: Recording,
  { userId, exceptSessionId, ...ending }: { userId: string; exceptSessionId: string | undefined } & Ending,
): Promise<{ authorizations: string[]; sessions: string[] }> => {
  const { trx } = recording
  const ended = await endSessionsOf(trx, { userId, exceptSessionId }, ending)
  const authorizations = await endAuthorizationsOfUser(trx, { userId, exceptSessionId }, ending.reason)
  await recordEnded(recording, ended, ending)
  return { authorizations, sessions: ended.map(({ id }) => id) }
}

/** Everything of a person, offline access too; but for one session, where that is spared. */
export const endAllOfUser = async (
  recording: Recording,
  { userId, exceptSessionId, ...ending }: { userId: string; exceptSessionId?: string | undefined } & Ending,
): Promise<void> => {
  const over = await endAccessOfUser(recording, { userId, exceptSessionId, ...ending })
  await revoke(recording.trx, await endActing(recording, over, ending.endedBy))
}

/**
 * An authorization whose refresh token was used again: either party may be the attacker. Recorded by whoever comes
 * first.
 */
export const endReused = async (
  recording: Recording,
  { authorizationId, userId, clientId }: { authorizationId: string; userId: string; clientId: string },
): Promise<void> => {
  const { trx, record } = recording
  await holdUser(trx, userId)
  const reason = 'refresh_token_reused'
  const over = await endAuthorizationsById(trx, [authorizationId], reason)
  if (over.length > 0) {
    const extras = { userId, applicationId: clientId, authorizationId }
    await record({ type: 'RefreshToken.Reused', entity: { kind: 'user', id: userId }, data: null, extras })
  }
  await revoke(trx, await endActing(recording, { authorizations: over, sessions: [] }, undefined))
}

/** These authorizations, or all that a client has of a person. Answers how many had not ended. */
export const endAuthorizations = async (
  recording: Recording,
  which: { ids: readonly string[] } | { userId: string; clientId: string },
  reason: EndReason,
  endedBy?: string | undefined,
): Promise<number> => {
  const { trx } = recording
  const over =
    'ids' in which
      ? await endAuthorizationsById(trx, which.ids, reason)
      : await endAuthorizationsOfClient(trx, which, reason)
  await revoke(trx, await endActing(recording, { authorizations: over, sessions: [] }, endedBy))
  return over.length
}
