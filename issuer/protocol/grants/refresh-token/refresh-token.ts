import { recordEvent } from '../../../../events/outbox.ts'
import type { Database, Query } from '../../../../platform/database/database.ts'
import { randomToken } from '../../../../platform/ids.ts'
import type { TokenAudit } from '../../../base/audit/token-audit.ts'
import { OAuthError } from '../../../base/errors/problems.ts'
import type { CustomClaims } from '../../../claims/claims.ts'
import { endReused } from '../../../tokens/authorizations/end.ts'
import { openSuccessor, sealSuccessor } from '../../../tokens/authorizations/successor.ts'
import { grantTypes } from '../../../tokens/grant-types.ts'
import { tokenDigest } from '../../../tokens/token-digest.ts'
import { type Client, isPublic } from '../../clients/client.ts'
import { type Attempt, audited } from '../authorization/audit.ts'
import { type PreparedIssue, planTokens } from '../authorization/plan.ts'
import { refreshKey } from '../authorization/refresh-key.ts'
import { refused } from '../authorization/refusal.ts'
import { requireCounting } from '../authorization/require-counting.ts'
import { signsPeopleIn } from '../authorization/signs-people-in.ts'
import { targetOf } from '../authorization/target.ts'
import { type Grant, grant } from '../grant.ts'
import type { Redeemer } from '../redeeming-store.ts'
import { findRefreshFacts, findSuccessor, issueWithoutRotation, type RefreshFacts, rotate } from './refresh-store.ts'
import { type RefreshRequest, readRefreshRequest } from './request.ts'

export interface RefreshDependencies {
  database: Pick<Database, 'query' | 'transaction'>
  claims: CustomClaims
  /** The publisher of the outbox. */
  events: { wake(): void }
  /** Of what is refused; the row of one that succeeds is written with it. */
  audit: TokenAudit
  /** How long a token that was replaced still gets the one that replaced it, in seconds. */
  refreshTokenLeeway: number
}

interface PreparedRefresh extends PreparedIssue {
  input: RefreshRequest
  attempt: Attempt
  use: Use
}

/**
 * What becomes of a refresh token that may be used: another takes its place, it stays, or another has taken its place a
 * moment ago, which its holder gets as well.
 */
type Use = 'rotate' | 'keep' | { successor: Buffer }

const day = 86_400

const path = '/oidc/token'
const tokenRequest = { method: 'POST', path, matchedRoute: path, params: {}, status: 400 }

/** RFC 6749 §6, OpenID Connect Core §12, RFC 9700 §2.2.2 and §4.14.2. */
export const refreshTokenGrant = (dependencies: RefreshDependencies): Grant => {
  const { database, claims, events, audit, refreshTokenLeeway: leeway } = dependencies

  const factsOf = ({ digest, organizationId }: RefreshRequest, resource: string | undefined) =>
    findRefreshFacts(database.query, { digest, resource, organizationId, leeway })

  /** Throws the refusal that applies first. A token that was replaced before the leeway ends its authorization. */
  const useOf = async (facts: RefreshFacts, attempt: Attempt): Promise<Use> => {
    const { client } = attempt.request
    requireCounting(facts, client)
    if (facts.tokenRevoked) throw refused('refresh_token_unknown')
    if (facts.successor !== null) return { successor: Buffer.from(facts.successor, 'hex') }
    if (facts.rotated) {
      // RFC 9700 §4.14.2: either party may be the attacker. It stands although the request fails.
      attempt.ended = 'refresh_token_reused'
      const request = { ...tokenRequest, ...attempt.request.origin }
      await database.transaction((trx) =>
        endReused({ trx, record: (event) => recordEvent(trx, { ...event, request }) }, facts),
      )
      events.wake()
      throw refused('refresh_token_reused')
    }
    if (facts.tokenExpired) throw refused('refresh_token_expired')
    return isRotated(facts, client) ? 'rotate' : 'keep'
  }

  const prepare = async (
    input: RefreshRequest,
    attempt: Attempt,
    ahead: Promise<RefreshFacts | undefined> | undefined,
  ): Promise<PreparedRefresh> => {
    const { request } = attempt
    const facts = await (ahead ?? factsOf(input, request.resource))
    // Somebody else's token is as good as none, and stays as it is.
    if (facts?.clientId !== request.client.id) throw refused('refresh_token_unknown')
    attempt.facts = facts
    // RFC 9449 §5. Before all else: who has a copy without the key ends nothing with it.
    if (facts.jkt !== null && facts.jkt !== request.jkt) throw refused('refresh_token_bound')
    const use = await useOf(facts, attempt)
    const inForce = input.narrows ? narrowed(request.scopes, facts) : facts.scopes
    const target = await targetOf(database.query, request, facts, inForce)
    // OpenID Connect Core §12.2: "it SHOULD NOT have a nonce Claim".
    const planned = await planTokens(claims, { ...attempt, facts }, { target, inForce, nonce: undefined })
    return { ...planned, input, attempt, use }
  }

  const redeem = async (redeemer: Redeemer, prepared: PreparedRefresh): Promise<{ refreshToken: string }> => {
    const { input, attempt, issue } = prepared
    const { client, resource } = attempt.request
    /** As it is now that somebody else was faster, or something has ended. */
    const lookAgain = async (): Promise<Use> => {
      const facts = await factsOf(input, resource)
      if (!facts) throw refused('refresh_token_unknown')
      return useOf(facts, attempt)
    }

    let { use } = prepared
    for (const wait of [false, true]) {
      if (use !== 'rotate') break
      const next = randomToken()
      const rotation = {
        digest: input.digest,
        next: tokenDigest('refresh-token', next),
        successor: sealSuccessor(next, input.refreshToken),
        // That of a page ends where the first one would have.
        ttl: client.type === 'SPA' ? undefined : client.refreshTokenTtlInDays * day,
        jkt: refreshKey(attempt.request),
        leeway,
      }
      if (await rotate(redeemer, issue, rotation, { wait })) return { refreshToken: next }
      use = await lookAgain()
    }
    if (use === 'rotate') throw busy()
    const refreshToken = use === 'keep' ? input.refreshToken : await newestOf(redeemer.query, input.refreshToken, use)
    if (!(await issueWithoutRotation(redeemer, issue))) {
      await lookAgain()
      throw busy()
    }
    return { refreshToken }
  }

  return grant<RefreshRequest, PreparedRefresh, RefreshFacts | undefined>({
    type: grantTypes.refreshToken,
    allows: signsPeopleIn,
    read: readRefreshRequest,
    readAhead: (input, { resource }) => factsOf(input, resource),
    prepare(input, request, ahead) {
      const attempt: Attempt = { grantType: grantTypes.refreshToken, request }
      return audited(audit, attempt, prepare(input, attempt, ahead))
    },
    redeem: (redeemer, prepared) => audited(audit, prepared.attempt, redeem(redeemer, prepared)),
  })
}

/** Public clients rotate at every use; those that prove who they are, when a longer life is due. */
const isRotated = ({ isAged }: RefreshFacts, client: Client): boolean =>
  isPublic(client) || (client.rotateRefreshToken && isAged)

/** RFC 6749 §6: "MUST NOT include any scope not originally granted". */
const narrowed = (asked: readonly string[], { scopes }: RefreshFacts): readonly string[] => {
  const wider = asked.filter((name) => !scopes.includes(name))
  if (wider.length === 0) return asked
  throw new OAuthError('invalid_scope', `The scope ${wider.slice(0, 10).join(', ')} was not granted.`)
}

/** The last of the chain that begins with `token`: each was sealed for who held the one before. */
const newestOf = async (query: Query, token: string, { successor }: { successor: Buffer }): Promise<string> => {
  let newest = token
  let sealed: Buffer | null | undefined = successor
  while (sealed) {
    newest = openSuccessor(sealed, newest)
    sealed = await findSuccessor(query, tokenDigest('refresh-token', newest))
  }
  if (sealed === undefined) throw refused('refresh_token_unknown')
  return newest
}

const busy = () =>
  new OAuthError('temporarily_unavailable', 'The refresh token is in use.', { headers: { 'Retry-After': '1' } })
