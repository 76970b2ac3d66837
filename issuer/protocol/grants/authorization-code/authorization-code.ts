import type { Database } from '../../../../platform/database/database.ts'
import type { TokenAudit } from '../../../base/audit/token-audit.ts'
import { OAuthError } from '../../../base/errors/problems.ts'
import type { CustomClaims } from '../../../claims/claims.ts'
import { grantTypes } from '../../../tokens/grant-types.ts'
import { type Attempt, audited } from '../authorization/audit.ts'
import { signsPeopleIn } from '../authorization/signs-people-in.ts'
import { type Grant, grant } from '../grant.ts'
import type { Redeemer } from '../redeeming-store.ts'
import { endReplayed, type PreparedCode, prepareCode, redeemPreparedCode } from './code-issue.ts'
import { type CodeFacts, countWrongVerifier, findCodeFacts } from './code-store.ts'
import { type CodeRequest, checkVerifier, readCodeRequest } from './request.ts'

export interface CodeDependencies {
  database: Pick<Database, 'query' | 'transaction'>
  claims: CustomClaims
  /** The publisher of the outbox. */
  events: { wake(): void }
  /** Of what is refused; the row of one that succeeds is written with it. */
  audit: TokenAudit
}

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
    if (facts.redeemedAgo !== null) await endReplayed({ database, events }, attempt, facts, input)
    if (facts.redeemedAgo !== null || facts.codeOver) throw unusable()
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
    return prepareCode({ database, claims }, { ...attempt, facts }, { digest: input.digest, nonce: facts.nonce })
  }

  const redeem = async (redeemer: Redeemer, prepared: PreparedCode) => {
    if (!(await redeemPreparedCode(redeemer, prepared))) throw unusable()
    return { refreshToken: prepared.refreshToken }
  }

  return grant<CodeRequest, PreparedCode, CodeFacts | undefined>({
    type: grantTypes.authorizationCode,
    allows: (client) => signsPeopleIn(client) && !client.isDeviceFlow,
    read: readCodeRequest,
    readAhead: (input, { resource }) => factsOf(input, resource),
    prepare(input, request, ahead) {
      const attempt: Attempt = { grantType: grantTypes.authorizationCode, request }
      return audited(audit, attempt, prepare(input, attempt, ahead))
    },
    redeem: (redeemer, prepared) => audited(audit, prepared.attempt, redeem(redeemer, prepared)),
  })
}
