import type { Mutation } from '../../base/mutate.ts'
import { endSessionsOfUser } from '../impersonations/impersonation-store.ts'
import { recordEnded } from '../impersonations/operations.ts'
import { removeOpaqueTokens } from '../opaque-token-store.ts'
import { type NewRevocation, revoke } from '../revocations/revocation-store.ts'
import { endAccessOfUser } from './end.ts'

/**
 * Ends everything a user can do, and everything others do as that user, in the transaction that suspends or deletes the
 * user, who must be locked by then: no token can be issued meanwhile. Call it last (see `revoke`).
 */
export const endUserAccess = async (mutation: Mutation, userId: string, endedBy: string): Promise<void> => {
  const { trx } = mutation
  // One entry of the feed, for the user, revokes the tokens of all of them.
  await endAccessOfUser(mutation, { userId, exceptSessionId: undefined, reason: 'user_suspended', endedBy })
  const ended = await endSessionsOfUser(trx, userId, endedBy)
  await removeOpaqueTokens(trx, { userId })
  await recordEnded(mutation, ended, [{ kind: 'sub', value: userId }])
}

/** Ends all tokens issued to a client so far. Call it last (see `revoke`). */
export const endClientAccess = async ({ trx }: Pick<Mutation, 'trx'>, clientId: string): Promise<void> => {
  await removeOpaqueTokens(trx, { clientId })
  const entry: NewRevocation = { kind: 'client', value: clientId }
  await revoke(trx, [entry])
}
