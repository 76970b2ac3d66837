import type { Query } from '../../../platform/database/database.ts'
import { JwtError } from '../../../platform/jwt/jwt-error.ts'
import { problem } from '../../base/errors/problems.ts'
import { type AccessTokenVerifier, cameFromPersonalAccessToken } from '../access-token.ts'
import type { ActorFacts } from '../impersonation-requests/request-store.ts'
import { actorViaOf } from '../impersonations/actor-via.ts'
import { actorsOf } from '../represented-users.ts'
import { findJwtState, findOpaqueToken } from '../revocations/active-token-store.ts'
import { tokenDigest } from '../token-digest.ts'
import { findSignIn } from './subject-token-store.ts'

/** Who is to act, as their own token says it. */
export interface ShownActor {
  id: string
  facts: ActorFacts
}

const invalid = () => problem('impersonation.actor_token_invalid')

/**
 * Reads the access token of whoever is to act, which the backend got from them. It must count, be a user's and have
 * `openid`, as an exchange asks. Throws 400 `impersonation.actor_token_invalid`.
 */
export const readActorToken = (query: Query, verifier: AccessTokenVerifier, token: string): Promise<ShownActor> =>
  token.includes('.') ? readJwt(query, verifier, token) : readOpaque(query, token)

const requireOpenid = (scope: string | undefined) => {
  if (!scope?.split(' ').includes('openid')) throw invalid()
}

const readJwt = async (query: Query, verifier: AccessTokenVerifier, token: string): Promise<ShownActor> => {
  const claims = await verifier.verify(token, { audience: undefined }).catch((error: unknown) => {
    throw error instanceof JwtError ? invalid() : error
  })
  const { sub, client_id: clientId, scope, sid, act, acr, auth_time } = claims
  if (clientId === undefined || clientId === sub || !(await findJwtState(query, claims)).active) throw invalid()
  // As an opaque one: it is shown by the backend, which has no key of its holder.
  if (claims['cnf'] !== undefined) throw invalid()
  requireOpenid(scope)
  return {
    id: sub,
    facts: {
      via: actorViaOf({ sid, fromPersonalAccessToken: cameFromPersonalAccessToken(claims) }),
      clientId,
      ...(typeof acr === 'string' && typeof auth_time === 'number' && { acr, auth_time }),
      chain: [sub, ...actorsOf(act)],
    },
  }
}

const readOpaque = async (query: Query, token: string): Promise<ShownActor> => {
  const digest = tokenDigest('opaque-token', token)
  const found = await findOpaqueToken(query, digest)
  if (!found) throw invalid()
  requireOpenid(found.scope)
  const { userId, clientId, sessionId: sid, act, fromPersonalAccessToken } = found
  return {
    id: userId,
    facts: {
      via: actorViaOf({ sid, fromPersonalAccessToken }),
      clientId,
      ...(await findSignIn(query, digest)),
      chain: [userId, ...actorsOf(act ?? undefined)],
    },
  }
}
