import type { Query } from '../../platform/database.ts'
import type { VerifiedClaims } from '../../platform/jwt/verify.ts'
import { OAuthError } from '../../platform/problem.ts'
import { findJwtStanding } from './standing-store.ts'

/** The claims of a token that counts now; one round trip. Throws `invalid_token` when it was revoked, or its session, people or client are gone. */
export const requireLive = async (query: Query, claims: VerifiedClaims): Promise<VerifiedClaims> => {
  if ((await findJwtStanding(query, claims)).live) return claims
  throw new OAuthError('invalid_token', 'The access token was revoked.')
}
