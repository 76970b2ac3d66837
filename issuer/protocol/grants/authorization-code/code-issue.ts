import type { EventContent } from '../../../../events/catalogue.ts'
import { recordEvent } from '../../../../events/outbox.ts'
import type { Database } from '../../../../platform/database/database.ts'
import { randomToken } from '../../../../platform/ids.ts'
import type { CustomClaims } from '../../../claims/claims.ts'
import { endAuthorizations } from '../../../tokens/authorizations/end.ts'
import { tokenDigest } from '../../../tokens/token-digest.ts'
import type { Client } from '../../clients/client.ts'
import type { Attempt } from '../authorization/audit.ts'
import type { AuthorizationFacts } from '../authorization/authorization-facts-store.ts'
import { type PreparedIssue, planTokens } from '../authorization/plan.ts'
import { refreshKey } from '../authorization/refresh-key.ts'
import { requireCounting } from '../authorization/require-counting.ts'
import { targetOf } from '../authorization/target.ts'
import type { Redeemer } from '../redeeming-store.ts'
import { type CodeFacts, redeemCode } from './code-store.ts'

/** What becomes of a code, whether a browser brought it (RFC 6749 §4.1.3) or a device waited for it (RFC 8628 §3.4). */
export interface PreparedCode extends PreparedIssue {
  attempt: Attempt
  code: Buffer
  refreshToken: string | undefined
  /** Of the refresh token, in seconds. */
  refreshTtl: number
}

/** Throws what is wrong with the authorization by now, or with the target that is asked for. */
export const prepareCode = async (
  { database, claims }: { database: Pick<Database, 'query'>; claims: CustomClaims },
  attempt: Attempt & { facts: AuthorizationFacts },
  { digest, nonce }: { digest: Buffer; nonce: string | null },
): Promise<PreparedCode> => {
  const { request, facts } = attempt
  const { client } = request
  requireCounting(facts, client)
  const inForce = facts.scopes
  const target = await targetOf(database.query, request, facts, inForce)
  return {
    ...(await planTokens(claims, attempt, { target, inForce, nonce: nonce ?? undefined })),
    attempt,
    code: digest,
    refreshToken: facts.isOffline || getsRefreshToken(client) ? randomToken() : undefined,
    refreshTtl: client.refreshTokenTtlInDays * 86_400,
  }
}

/** False when the code cannot be used (any more). */
export const redeemPreparedCode = (
  redeemer: Redeemer,
  { issue, attempt, code, refreshToken, refreshTtl }: PreparedCode,
): Promise<boolean> => {
  const refresh = refreshToken
    ? { digest: tokenDigest('refresh-token', refreshToken), ttl: refreshTtl, jkt: refreshKey(attempt.request) }
    : undefined
  return redeemCode(redeemer, issue, code, refresh)
}

/**
 * A page that is mounted twice redeems its code twice at once. What comes later than this, in ms after the redemption,
 * is a replay (RFC 6749 §4.1.2).
 */
const doubleMs = 1_000

const path = '/oidc/token'
const tokenRequest = { method: 'POST', path, matchedRoute: path, params: {}, status: 400 }

/** Ends what came of a code that was redeemed before, which stands although the request fails. */
export const endReplayed = async (
  { database, events }: { database: Pick<Database, 'transaction'>; events: { wake(): void } },
  attempt: Attempt,
  { authorizationId, redeemedAgo }: Pick<CodeFacts, 'authorizationId' | 'redeemedAgo'>,
  { arrivedAt }: { arrivedAt: number },
): Promise<void> => {
  // Until it arrived, at the most: how long it waited here is not the client's doing.
  if (redeemedAgo === null || redeemedAgo - (performance.now() - arrivedAt) <= doubleMs) return
  attempt.ended = 'code_replayed'
  const request = { ...tokenRequest, ...attempt.request.origin }
  await database.transaction((trx) => {
    const recording = { trx, record: (event: EventContent) => recordEvent(trx, { ...event, request }) }
    return endAuthorizations(recording, { ids: [authorizationId] }, 'code_replayed')
  })
  events.wake()
}

/** Without offline access, a web application may be set to get one that ends with the session. */
const getsRefreshToken = ({ type, alwaysIssueRefreshToken }: Client): boolean =>
  alwaysIssueRefreshToken && (type === 'SPA' || type === 'Traditional')
