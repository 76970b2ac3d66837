import type { Clock } from '../../platform/clock.ts'
import type { Database } from '../../platform/database/database.ts'
import type { RequestOrigin } from '../base/client-address.ts'
import { OAuthError } from '../base/errors/problems.ts'
import type { MintAccessToken } from '../tokens/access-token.ts'
import type { Proof } from '../tokens/dpop/proofs.ts'
import type { MintIdToken } from '../tokens/id-token.ts'
import { provenKeyOfToken } from './clients/proven-key.ts'
import { findTokenRequestFacts, type TokenRequestFacts } from './clients/token-request-store.ts'
import type { PreparedToken, Redeemed, RequestedTarget } from './grants/grant.ts'
import type { Grants } from './grants.ts'
import type { Parameters } from './requests/parameters.ts'
import { organizationsResource } from './requests/resource.ts'
import { isOidcOnly, parseScope } from './requests/scope.ts'
import { tokenRequestOf } from './token-request.ts'

export interface IssueTokensDependencies {
  database: Pick<Database, 'query' | 'transaction'>
  grants: Grants
  mint: MintAccessToken
  mintIdToken: MintIdToken
  now: Clock
}

/** A request for tokens, whoever brought it. */
export interface TokenAsking {
  parameters: Parameters
  origin: RequestOrigin
  /** Of a key that the tokens are to be bound to. */
  proof: Proof | undefined
  /** Proves who asks; `find` reads what is known of a client. Throws `invalid_client`. */
  authenticate(find: (clientId: string) => Promise<TokenRequestFacts | undefined>): Promise<TokenRequestFacts>
  /** Told as soon as it is known which grant it is. */
  onGrant?(grantType: string): void
}

/** Members without a value are left out by JSON.stringify. */
export interface IssuedTokens {
  access_token: string
  issued_token_type: string | undefined
  token_type: 'Bearer' | 'DPoP'
  expires_in: number
  refresh_token: string | undefined
  id_token: string | undefined
  scope: string
}

export type IssueTokens = (asking: TokenAsking) => Promise<IssuedTokens>

/** Authenticate the client → its grant → prepare → sign → redeem. Knows nothing of HTTP. */
export const createIssueTokens = (dependencies: IssueTokensDependencies): IssueTokens => {
  const { database, grants, mint, mintIdToken, now } = dependencies

  const sign = ({ token, idToken }: PreparedToken, jkt: string | undefined) => ({
    accessToken:
      'claims' in token ? mint({ ...token.claims, cnf: jkt === undefined ? undefined : { jkt } }) : token.opaque,
    idToken: idToken && mintIdToken(idToken.claims, idToken.algorithm),
  })

  return async ({ parameters, origin, proof, authenticate, onGrant }) => {
    const scopes = parseScope(parameters.get('scope'))
    const organizationId = parameters.get('organization_id')
    const resource = resourceOf(parameters)
    const asked: RequestedTarget = {
      resource,
      useDefaultResource: organizationId === undefined && !isOidcOnly(scopes),
      scopes,
    }
    const wanted = readGrant(grants, parameters)
    let ahead: Promise<unknown> | undefined
    const facts = await authenticate((clientId) => {
      // In the same turn as the client's own facts. Should it fail, and the client be refused, nobody is waiting for
      // it.
      if (!wanted.refusal) ahead = wanted.grant?.readAhead?.(wanted.input, asked)
      ahead?.catch(() => {})
      return findTokenRequestFacts(database.query, { clientId, ...asked })
    })
    const { client } = facts
    const { grantType, grant } = requireGrant(wanted)
    onGrant?.(grantType)
    if (!grant.allows(client)) {
      grant.forbidden?.(client, origin)
      throw new OAuthError('unauthorized_client', 'This client may not use this grant.')
    }
    if (wanted.refusal) throw wanted.refusal
    const jkt = await provenKeyOfToken(client, proof)
    const tokenRequest = tokenRequestOf(database.query, { ...asked, organizationId, origin, jkt, now: now() }, facts)
    const prepared = await grant.prepare(wanted.input, tokenRequest, ahead)
    // Signed first: what `redeem` uses up is never lost to a failure of ours.
    const signed = sign(prepared, jkt)
    const redeemed = await grant.redeem?.(database, prepared)
    grant.issued?.(prepared, tokenRequest)
    return answerOf(prepared, { ...signed, tokenType: jkt === undefined ? 'Bearer' : 'DPoP' }, redeemed ?? {})
  }
}

/** The requested resource. Undefined for the organizations resource when the request also names an organization. */
const resourceOf = (parameters: Parameters): string | undefined => {
  const resource = parameters.get('resource')
  return resource === organizationsResource && parameters.has('organization_id') ? undefined : resource
}

/**
 * The grant that is asked for, with its own parameters. What is wrong with them is told once it is known who asks.
 */
const readGrant = (grants: Grants, parameters: Parameters) => {
  const grantType = parameters.get('grant_type')
  const grant = grantType === undefined ? undefined : grants.get(grantType)
  try {
    return { grantType, grant, input: grant?.read(parameters) }
  } catch (refusal) {
    return { grantType, grant, refusal }
  }
}

const requireGrant = ({ grantType, grant }: ReturnType<typeof readGrant>) => {
  if (grantType === undefined) throw new OAuthError('invalid_request', 'Missing required parameter: grant_type.')
  if (!grant) throw new OAuthError('unsupported_grant_type', 'This grant type is not supported.')
  return { grantType, grant }
}

const answerOf = (
  prepared: PreparedToken,
  signed: { accessToken: string; idToken: string | undefined; tokenType: IssuedTokens['token_type'] },
  { refreshToken }: Redeemed,
): IssuedTokens => ({
  access_token: signed.accessToken,
  issued_token_type: prepared.issuedTokenType,
  token_type: signed.tokenType,
  expires_in: prepared.expiresIn,
  refresh_token: refreshToken,
  id_token: signed.idToken,
  scope: prepared.scope,
})
