import type { EventContent } from '../../../../events/catalogue.ts'
import { recordEvent } from '../../../../events/outbox.ts'
import type { Database } from '../../../../platform/database/database.ts'
import { randomToken } from '../../../../platform/ids.ts'
import type { TokenAudit } from '../../../base/audit/token-audit.ts'
import { OAuthError } from '../../../base/errors/problems.ts'
import type { CustomClaims } from '../../../claims/claims.ts'
import { endAuthorizations } from '../../../tokens/authorizations/end.ts'
import { grantTypes } from '../../../tokens/grant-types.ts'
import { tokenDigest } from '../../../tokens/token-digest.ts'
import type { Client } from '../../clients/client.ts'
import { type Attempt, audited } from '../authorization/audit.ts'
import { type PreparedIssue, planTokens } from '../authorization/plan.ts'
import { refreshKey } from '../authorization/refresh-key.ts'
import { requireCounting } from '../authorization/require-counting.ts'
import { signsPeopleIn } from '../authorization/signs-people-in.ts'
import { targetOf } from '../authorization/target.ts'
import { type Grant, grant } from '../grant.ts'
import type { Redeemer } from '../redeeming-store.ts'
import { type CodeFacts, countWrongVerifier, findCodeFacts, redeemCode } from './code-store.ts'
import { type CodeRequest, checkVerifier, readCodeRequest } from './request.ts'

export interface CodeDependencies {
  database: Pick<Database, 'query' | 'transaction'>
  claims: CustomClaims
  /** The publisher of the outbox. */
  events: { wake(): void }
  /** Of what is refused; the row of one that succeeds is written with it. */
  audit: TokenAudit
}

interface PreparedCode extends PreparedIssue {
  attempt: Attempt
  code: Buffer
  refreshToken: string | undefined
  /** Of the refresh token, in seconds. */
  refreshTtl: number
}

/**
 * A page that is mounted twice redeems its code twice at once. What comes later than this, in ms after the redemption,
 * is a replay (RFC 6749 §4.1.2).
 */
const doubleMs = 1_000

const path = '/oidc/token'
const tokenRequest = { method: 'POST', path, matchedRoute: path, params: {}, status: 400 }

/** One answer for whatever is wrong with a code. */
const unusable = () =>
  new OAuthError('invalid_grant', 'The code is unknown, expired or used, or was not issued for this request.')

/** RFC 6749 §4.1.3, RFC 7636, OpenID Connect Core §3.1.3: tokens for the code of an authorization request. */
export const authorizationCodeGrant = (dependencies: CodeDependencies): Grant => {
  const { database, claims, events, audit } = dependencies

  const factsOf = ({ digest, organizationId }: CodeRequest, resource: string | undefined) =>
    findCodeFacts(database.query, { digest, resource, organizationId })

  // The order of the checks: client, redirect URI, PKCE, key, then whether the code can be used. Whoever gets one of
  // the first four wrong may not be the client, and neither uses the code up nor ends what came of it.
  const checkCode = async (input: CodeRequest, attempt: Attempt, facts: CodeFacts): Promise<void> => {
    if (facts.redirectUri !== input.redirectUri) throw unusable()
    const verifier = checkVerifier(input.codeVerifier, facts.codeChallenge)
    if (verifier === 'wrong') await countWrongVerifier(database.query, input.digest)
    if (verifier !== 'right') throw unusable()
    // RFC 9449 §10: "MUST reject the request".
    if (facts.jkt !== null && facts.jkt !== attempt.request.jkt) throw unusable()
    if (facts.redeemedAgo !== null) throw await replayed(input, attempt, facts.authorizationId, facts.redeemedAgo)
    if (facts.codeOver) throw unusable()
  }

  /** Ends what came of the code, which stands although the request fails. */
  const replayed = async (
    { arrivedAt }: CodeRequest,
    attempt: Attempt,
    authorizationId: string,
    redeemedAgo: number,
  ) => {
    // Until it arrived, at the most: how long it waited here is not the client's doing.
    if (redeemedAgo - (performance.now() - arrivedAt) > doubleMs) {
      attempt.ended = 'code_replayed'
      const request = { ...tokenRequest, ...attempt.request.origin }
      await database.transaction((trx) => {
        const recording = { trx, record: (event: EventContent) => recordEvent(trx, { ...event, request }) }
        return endAuthorizations(recording, { ids: [authorizationId] }, 'code_replayed')
      })
      events.wake()
    }
    return unusable()
  }

  const prepare = async (
    input: CodeRequest,
    attempt: Attempt,
    ahead: Promise<CodeFacts | undefined> | undefined,
  ): Promise<PreparedCode> => {
    const { request } = attempt
    const { client } = request
    const facts = await (ahead ?? factsOf(input, request.resource))
    if (facts?.clientId !== client.id) throw unusable()
    attempt.facts = facts
    await checkCode(input, attempt, facts)
    requireCounting(facts, client)
    const inForce = facts.scopes
    const target = await targetOf(database.query, request, facts, inForce)
    const nonce = facts.nonce ?? undefined
    return {
      ...(await planTokens(claims, { ...attempt, facts }, { target, inForce, nonce })),
      attempt,
      code: input.digest,
      refreshToken: facts.isOffline || getsRefreshToken(client) ? randomToken() : undefined,
      refreshTtl: client.refreshTokenTtlInDays * 86_400,
    }
  }

  const redeem = async (redeemer: Redeemer, { issue, attempt, code, refreshToken, refreshTtl }: PreparedCode) => {
    const refresh = refreshToken
      ? { digest: tokenDigest('refresh-token', refreshToken), ttl: refreshTtl, jkt: refreshKey(attempt.request) }
      : undefined
    if (!(await redeemCode(redeemer, issue, code, refresh))) throw unusable()
    return { refreshToken }
  }

  return grant<CodeRequest, PreparedCode, CodeFacts | undefined>({
    type: grantTypes.authorizationCode,
    allows: signsPeopleIn,
    read: readCodeRequest,
    readAhead: (input, { resource }) => factsOf(input, resource),
    prepare(input, request, ahead) {
      const attempt: Attempt = { grantType: grantTypes.authorizationCode, request }
      return audited(audit, attempt, prepare(input, attempt, ahead))
    },
    redeem: (redeemer, prepared) => audited(audit, prepared.attempt, redeem(redeemer, prepared)),
  })
}

/** Without offline access, a web application may be set to get one that ends with the session. */
const getsRefreshToken = ({ type, alwaysIssueRefreshToken }: Client): boolean =>
  alwaysIssueRefreshToken && (type === 'SPA' || type === 'Traditional')
