import type { Database } from '../../../platform/database/database.ts'
import type { RequestOrigin } from '../../base/client-address.ts'
import type { ScriptVersions } from '../../claims/claims-script-store.ts'
import type { AccessTokenClaims } from '../../tokens/access-token.ts'
import type { IdTokenClaims } from '../../tokens/id-token.ts'
import type { SigningAlgorithmName } from '../../tokens/keys/signing-algorithms.ts'
import type { Client } from '../clients/client.ts'
import type { Parameters } from '../requests/parameters.ts'
import type { Resource } from '../requests/resource.ts'

/**
 * A grant turns the parameters of an authenticated client into a token, in two steps. `prepare` reads, checks, asks
 * policies and scripts. Then the token is signed. `redeem`, for grants that use something up, makes it so in one
 * statement or one transaction; only after that is the token answered. So nothing is used up without an answer, and
 * nothing is answered twice. Grants never sign and never see HTTP.
 */
export interface Grant<Input = unknown, Prepared extends PreparedToken = PreparedToken, Ahead = unknown> {
  /** `grant_type` */
  type: string
  allows(client: Client): boolean
  /** Told when a client that it does not allow asks, for the audit trail. */
  forbidden?(client: Client, origin: RequestOrigin): void
  /** Parses the grant's own parameters. Throws `OAuthError` `invalid_request`. */
  read(parameters: Parameters): Input
  /**
   * Begins to read what `prepare` will need, while it is still being looked up who asks: one cheap query, with no
   * effect. Undefined when there is nothing that can be read before that is known.
   */
  readAhead?(input: Input, asked: RequestedTarget): Promise<Ahead> | undefined
  prepare(input: Input, request: TokenRequest, ahead: Promise<Ahead> | undefined): Promise<Prepared>
  /** All or nothing. Throws `OAuthError` when somebody else was faster or something changed since `prepare`. */
  redeem?(database: Pick<Database, 'query' | 'transaction'>, prepared: Prepared): Promise<Redeemed>
  /** After the answer is certain: what is left to do that the answer need not wait for. */
  issued?(prepared: Prepared, request: TokenRequest): void
}

/** What a token is asked for, as it stands in the request. */
export interface RequestedTarget {
  /** The indicator, registered or not. */
  resource: string | undefined
  /** Without a resource, the default one is meant. */
  useDefaultResource: boolean
  /** Scope names, each once. */
  scopes: readonly string[]
}

/** What every grant gets: the caller and what it asks a token for. */
export interface TokenRequest extends RequestedTarget {
  client: Client
  /** Of the scopes asked for, what the client itself holds on the resource. */
  clientScopes: readonly string[]
  /** Those that add claims to tokens; undefined when there are none. */
  claimsScripts: ScriptVersions
  /** `organization_id`: the organization that the token will be for or, on a resource, count in; known or not. */
  organizationId: string | undefined
  /**
   * The token's resource: the requested or the default one. Throws `invalid_target` when it is unknown, then
   * `invalid_scope` when it lacks a scope. With `required: false`, undefined means no resource; scopes are then not
   * checked if an organization is requested.
   */
  target(options: { required: true }): Promise<Resource>
  target(options: { required: false }): Promise<Resource | undefined>
  origin: RequestOrigin
  /** Thumbprint of the key that the request proved (RFC 9449 §5): what is issued is bound to it. */
  jkt: string | undefined
  now: Date
}

export interface PreparedToken {
  /** A JWT's claims, or an opaque token that `redeem` stores. */
  token: { claims: AccessTokenClaims } | { opaque: string }
  /** Space-separated. */
  scope: string
  /** In seconds. */
  expiresIn: number
  /** RFC 8693 §2.2.1 */
  issuedTokenType?: string
  idToken?: { claims: IdTokenClaims; algorithm: SigningAlgorithmName | undefined } | undefined
}

/** What only redeeming decides. */
export interface Redeemed {
  refreshToken?: string | undefined
}

/** Infers a grant's own types and hides them from the table. */
export const grant = <Input, Prepared extends PreparedToken, Ahead = unknown>(
  definition: Grant<Input, Prepared, Ahead>,
): Grant => definition as unknown as Grant
