import { type Query, queryOf, type Transaction } from '../../../platform/database/database.ts'
import type { ProblemCode } from '../../base/errors/problems.ts'
import { tokenDigest } from '../../tokens/token-digest.ts'
import type { InteractionEvent, OneTimeTokenRow, OneTimeTokenStatus } from './one-time-token.ts'
import { endOneTimeToken, findOneTimeTokenByDigest } from './one-time-token-store.ts'

export interface PresentedToken {
  /** In any case. */
  email: string
  token: string
  /** What it is used for. Undefined: whatever it is good for. */
  event?: InteractionEvent | undefined
}

export type TokenRefusal = Extract<ProblemCode, `one_time_token.${string}`>

export type TokenUse = { row: OneTimeTokenRow; refusal?: undefined } | { row?: undefined; refusal: TokenRefusal }

const overs: Readonly<Record<Exclude<OneTimeTokenStatus, 'active'>, TokenRefusal>> = {
  consumed: 'one_time_token.token_consumed',
  revoked: 'one_time_token.token_revoked',
  expired: 'one_time_token.token_expired',
}

/** Says whether the token is good, and leaves it as it is. */
export const checkOneTimeToken = async (query: Query, { email, token, event }: PresentedToken): Promise<TokenUse> => {
  const row = await findOneTimeTokenByDigest(query, tokenDigest('one-time-token', token), email)
  if (!row) return { refusal: 'one_time_token.token_not_found' }
  if (!row.isOf) return { refusal: 'one_time_token.email_mismatch' }
  if (row.status !== 'active') return { refusal: overs[row.status] }
  const bound = row.context.interactionEvent
  if (event !== undefined && bound !== undefined && bound !== event) {
    return { refusal: 'one_time_token.interaction_event_mismatch' }
  }
  return { row }
}

/** Uses the token up. Of those who present it at once, one gets it: the others find it consumed. */
export const consumeOneTimeToken = async (trx: Transaction, presented: PresentedToken): Promise<TokenUse> => {
  const query = queryOf(trx)
  const { row, refusal } = await checkOneTimeToken(query, presented)
  if (!row) return { refusal }
  const consumed = await endOneTimeToken(trx, row.id, 'consumed')
  if (consumed) return { row: consumed }
  const { refusal: reason = 'one_time_token.token_not_found' } = await checkOneTimeToken(query, presented)
  return { refusal: reason }
}
