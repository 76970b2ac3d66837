import type { ClientAuth } from 'oauth4webapi'

/** What a provider's discovery document says, as far as it matters (OpenID Connect Discovery §3). */
export type ProviderMetadata = {
  /** With `{tenantid}` in it where every tenant is an issuer of its own. */
  issuer: string
  authorization_endpoint: string
  token_endpoint: string
  jwks_uri: string
  userinfo_endpoint?: string | undefined
  /** Asymmetric ones. */
  id_token_signing_alg_values_supported: string[]
  token_endpoint_auth_methods_supported?: string[] | undefined
  authorization_response_iss_parameter_supported?: boolean | undefined
}

export type Claims = Readonly<Record<string, unknown>>

export interface BeginFederation {
  /** `BASE_URL/callback/<connectorId>`: every connector has one of its own (RFC 9700 §4.4.2.1). */
  redirectUri: string
  /** Unguessable, bound to the browser by the caller. */
  state: string
  loginHint?: string | undefined
  /** The person shows there again who they are, even where the provider knows the browser; if it can ask for that. */
  asksAgain?: boolean | undefined
}

/** What is particular about an OpenID provider, and how we are known there. */
export interface OpenIdProfile {
  /** The document is below it, at `/.well-known/openid-configuration`. */
  discovery: string
  /** Whether the document may name this issuer. Default: the address of the discovery alone. */
  isIssuer?: (issuer: string) => boolean
  /** Where the issuer names a tenant: whether its people may come. */
  isTenant?: (tenant: string) => boolean
  clientId: string
  clientAuth: (metadata: ProviderMetadata) => Promise<ClientAuth>
  /** With `openid`. */
  scope: string
  /** More of the authorization request. */
  parameters?: Record<string, string>
  /** What makes it ask whoever it knows already. Absent: it has nothing for that. */
  again?: Record<string, string>
  isEmailVerified: (claims: Claims) => boolean
  /** What comes with the callback alone, unsigned: nothing to know somebody by. */
  told?: (parameters: URLSearchParams) => { name?: string }
  /** The ID token holds everything. */
  skipsUserinfo?: boolean
}

/** Nothing but the word itself: some send the text `"false"`. */
export const saysVerified = ({ email_verified: verified }: Claims): boolean => verified === true
