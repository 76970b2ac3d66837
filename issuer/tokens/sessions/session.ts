/** A browser in which a person has signed in. The cookie holds a random value, the database its digest. */
export interface Session {
  id: string
  userId: string
  /** "Keep me signed in": the cookie outlives the browser. */
  isPersistent: boolean
  /** The claim `auth_time`. */
  authenticatedAt: Date
  /** RFC 8176 */
  amr: readonly string[]
  acr: Acr
  interaction: SignInRecord
  createdAt: Date
  /** Its absolute end, whatever happens in it. */
  expiresAt: Date
}

/** Authentication context classes, the weaker first. */
export const acrs = ['urn:surrogate:acr:basic', 'urn:surrogate:acr:mfa', 'urn:surrogate:acr:phr'] as const
export type Acr = (typeof acrs)[number]

/** How the person signed in, as custom claims scripts see it (`context.interaction`). */
export interface SignInRecord {
  interactionEvent: 'SignIn' | 'Register' | 'ForgotPassword'
  userId: string
  verificationRecords: readonly Readonly<Record<string, unknown>>[]
  /** `ip`, `userAgent`; from headers `country`, `city`, `latitude`, `longitude`, `botScore`, `botVerified`. */
  signInContext: Readonly<Record<string, string>>
}

/** Why a session or an authorization ended; `reason` of refusals and events say it too. */
export const endReasons = [
  'logout',
  'ended_by_user',
  'ended_by_administrator',
  'signed_in_again',
  'password_changed',
  'factor_removed',
  'user_suspended',
  'user_deleted',
  'consent_revoked',
  'refresh_token_reused',
  'code_replayed',
  'revoked_by_client',
  'expired',
] as const
export type EndReason = (typeof endReasons)[number]

/** In seconds. `brief` is the absolute life of a session that is not kept. */
export const sessionDefaults = { ttl: 14 * 86_400, idleTtl: 3 * 86_400, brief: 12 * 3_600 } as const
