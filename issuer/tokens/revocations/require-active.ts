import type { Query } from '../../../platform/database/database.ts'
import type { VerifiedClaims } from '../../../platform/jwt/verify.ts'
import { OAuthError } from '../../base/errors/problems.ts'
import { findHeldScopes } from './active-token-store.ts'

/**
 * The claims of a client's token as it counts now: with those of its scopes that the client still holds, so that a
 * permission taken away is gone at once. One round trip. Throws `invalid_token` when the token was revoked, or its
 * session, people or client are gone.
 */
export const requireActive = async (query: Query, claims: VerifiedClaims): Promise<VerifiedClaims> => {
  const { active, held } = await findHeldScopes(query, claims)
  if (!active) throw new OAuthError('invalid_token', 'The access token was revoked.')
  const scope = claims.scope?.split(' ').filter((name) => held.includes(name))
  return scope === undefined ? claims : { ...claims, scope: scope.join(' ') }
}
