/**
 * What a script that adds claims to access tokens is given, and what it may return: the types of
 * `surrogate/custom-claims`. A script is JavaScript; with these types an editor checks it:
 *
 * ```js /** @type {import('surrogate/custom-claims').GetCustomJwtClaims} *\/ const getCustomJwtClaims = async ({ token,
 * context, environmentVariables, api }) => ({})
 * ```
 */

/** For access tokens that stand for a user. Returns the claims to add; `{}` adds none. May be async. */
export type GetCustomJwtClaims<Environment = Record<string, string>> = (
  input: UserTokenInput<Environment>,
) => CustomClaims | Promise<CustomClaims>

/** For access tokens of machine-to-machine applications (`client_credentials`). */
export type GetCustomJwtClaimsForApplication<Environment = Record<string, string>> = (
  input: ApplicationTokenInput<Environment>,
) => CustomClaims | Promise<CustomClaims>

/**
 * Added to the token as they are: JSON of at most 16 kB, nested at most 8 deep. Claims that the issuer sets or that
 * have a registered meaning in access tokens (`iss`, `sub`, `scope`, `act`, …) are left out. Everybody who holds the
 * token can read them.
 */
export type CustomClaims = Record<string, Json | undefined>

export type Json = string | number | boolean | null | Json[] | { [member: string]: Json | undefined }

export interface UserTokenInput<Environment = Record<string, string>> {
  token: UserToken
  context: UserTokenContext
  environmentVariables: Environment
  api: ClaimsApi
}

export interface ApplicationTokenInput<Environment = Record<string, string>> {
  token: ApplicationToken
  context: ApplicationTokenContext
  environmentVariables: Environment
  api: ClaimsApi
}

export interface ClaimsApi {
  /**
   * Refuses the token: the client gets `access_denied` with this message, and a subject token stays usable. Does not
   * return.
   */
  denyAccess(message?: string): never
  /**
   * Asks one of the hosts that the operator allows (`CLAIMS_FETCH_HOSTS`): at most 2 requests a call, 500 ms and 64 kB
   * each; redirects are answers, not followed. Also there as the global `fetch`. Rejects when there is no answer.
   */
  fetch(url: string, options?: FetchOptions): Promise<FetchAnswer>
}

export interface FetchOptions {
  /** Default GET. */
  method?: 'GET' | 'POST'
  headers?: Record<string, string>
  body?: string
}

export interface FetchAnswer {
  /** A status of 200 to 299. */
  ok: boolean
  status: number
  /** Names in lower case. */
  headers: Record<string, string>
  text(): Promise<string>
  json(): Promise<Json>
}

/** What the token will carry. Times in seconds. */
interface TokenFields {
  jti: string
  /** The resource; absent for a token that only userinfo accepts. */
  aud?: string
  /** Space-separated: what is granted. */
  scope: string
  clientId: string
  /** `grant_type` of the request. */
  gty: string
  iat: number
  exp: number
  organizationId?: string
}

export interface UserToken extends TokenFields {
  kind: 'AccessToken'
  /** The user. */
  accountId: string
  /**
   * What the token belongs to: a sign-in at this client, which begins with `ps_`, or an impersonation session. Absent
   * for personal access tokens.
   */
  sid?: string
  /** Who acts as the user, and behind them those they act for. */
  act?: Actor
}

export interface Actor {
  sub: string
  act?: Actor
}

export interface ApplicationToken extends TokenFields {
  kind: 'ClientCredentials'
}

export interface UserTokenContext {
  user: ClaimsUser
  /** Present in every token exchange. */
  grant?: TokenExchange
  /** Present in tokens that came of signing in (`authorization_code`, `refresh_token`). */
  interaction?: Interaction
  /** The client of the request. */
  application: ClaimsApplication
  /** Present when the request names one. */
  organization?: ClaimsOrganization
}

export interface ApplicationTokenContext {
  application: ClaimsApplication
  /** Present when the request names one. */
  organization?: ClaimsOrganization
}

export interface TokenExchange {
  type: 'urn:ietf:params:oauth:grant-type:token-exchange'
  /** The `context` that the subject token was asked for with; `{}` without one and for other kinds of tokens. */
  subjectTokenContext: { [member: string]: Json }
}

/** How the user signed in. */
export interface Interaction {
  interactionEvent: 'SignIn' | 'Register' | 'ForgotPassword'
  userId: string
  /** What was proven, such as `{ id, type: 'Password', identifier, verified: true }`. */
  verificationRecords: { [member: string]: Json }[]
  /**
   * `ip`, `userAgent`, and where a proxy tells them `country`, `city`, `latitude`, `longitude`, `botScore`,
   * `botVerified`.
   */
  signInContext: { [member: string]: string }
}

/** Times in milliseconds. */
export interface ClaimsUser {
  id: string
  username: string | null
  primaryEmail: string | null
  primaryPhone: string | null
  name: string | null
  avatar: string | null
  customData: { [member: string]: Json }
  identities: { [target: string]: Json }
  profile: { [member: string]: Json }
  applicationId: string | null
  lastSignInAt: number | null
  createdAt: number
  updatedAt: number
  isSuspended: boolean
  hasPassword: boolean
  ssoIdentities: Json[]
  mfaVerificationFactors: Json[]
  roles: ClaimsRole[]
  organizations: ClaimsOrganization[]
  organizationRoles: { organizationId: string; roleId: string; roleName: string }[]
}

export interface ClaimsRole {
  id: string
  name: string
  description: string
  scopes: {
    id: string
    name: string
    description: string | null
    resourceId: string
    resource: { id: string; name: string; indicator: string }
  }[]
}

export interface ClaimsOrganization {
  id: string
  name: string
  description: string | null
  customData: { [member: string]: Json }
}

export interface ClaimsApplication {
  id: string
  name: string
  description: string | null
  type: string
  isThirdParty: boolean
  customData: { [member: string]: Json }
}
