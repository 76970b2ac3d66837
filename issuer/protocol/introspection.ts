import type { Database } from '../../platform/database/database.ts'
import { JwtError } from '../../platform/jwt/jwt-error.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import { OAuthError } from '../base/errors/problems.ts'
import type { AccessTokenVerifier } from '../tokens/access-token.ts'
import { findJwtState, inspectOpaqueToken } from '../tokens/revocations/active-token-store.ts'
import { tokenDigest } from '../tokens/token-digest.ts'
import { isPublic } from './clients/client.ts'
import type { AuthenticatedClient, AuthenticateRequest } from './clients/registered-client.ts'
import { formEndpoint, requiredToken } from './form-endpoint.ts'

/** RFC 7662 §2.2. Whatever the caller may not know about is inactive too, and looks the same. */
export type Introspection =
  | { active: false }
  | ({ active: true; token_type: 'Bearer' | 'DPoP' } & Record<string, unknown>)

export interface IntrospectionDependencies {
  database: Pick<Database, 'query'>
  authenticate: AuthenticateRequest
  verifier: AccessTokenVerifier
  /** `iss` */
  issuer: string
  logger: Logger
  metrics: Metrics
}

/** RFC 9449 §6.2. */
const tokenType = (cnf: unknown) => (cnf === undefined || cnf === null ? 'Bearer' : 'DPoP')

const inactive: Introspection = { active: false }

/**
 * `POST /oidc/token/introspection`: whether an access token counts now, and what it says. For confidential clients:
 * about tokens they were issued, tokens for a resource they hold a permission on, and, with the management permission
 * `revocations`, all. Revocation, the end of a session and suspension show at once. One round trip besides client
 * authentication.
 */
export const createIntrospectionEndpoint = (dependencies: IntrospectionDependencies) => {
  const { database, authenticate, verifier, issuer, logger, metrics } = dependencies
  const counter = metrics.counter('surrogate_introspections_total', 'Introspection requests by outcome.', ['outcome'])

  const introspectJwt = async (token: string, caller: AuthenticatedClient): Promise<Introspection> => {
    const claims = await verifier.verify(token, { audience: undefined }).catch((error: unknown) => {
      if (error instanceof JwtError) return undefined
      throw error
    })
    if (!claims) return inactive
    const { active, callerHoldsPermission } = await findJwtState(database.query, claims, caller.id)
    const mayKnow = claims.client_id === caller.id || caller.mayReadRevocations || callerHoldsPermission
    // Last, so that no claim takes their place.
    return active && mayKnow ? { ...claims, active, token_type: tokenType(claims['cnf']) } : inactive
  }

  const introspectOpaque = async (token: string, caller: AuthenticatedClient): Promise<Introspection> => {
    const found = await inspectOpaqueToken(database.query, tokenDigest('opaque-token', token))
    if (!found || !(found.clientId === caller.id || caller.mayReadRevocations)) return inactive
    return {
      active: true,
      token_type: tokenType(found.cnf),
      iss: issuer,
      sub: found.userId,
      client_id: found.clientId,
      scope: found.scope,
      iat: found.iat,
      exp: found.exp,
      ...(found.sessionId === null ? {} : { sid: found.sessionId }),
      ...(found.act === null ? {} : { act: found.act }),
      ...(found.cnf === null ? {} : { cnf: found.cnf }),
      ...(found.access === null ? {} : { access: found.access }),
    }
  }

  return formEndpoint({ logger, refused: (error) => counter.inc({ outcome: error }) }, async (request, parameters) => {
    const caller = await authenticate(request, parameters)
    if (isPublic(caller)) {
      // RFC 7662 §2.1: the endpoint requires authorization, and naming oneself is none.
      throw new OAuthError('invalid_client', 'Only a client that can keep a secret may introspect tokens.', {
        headers: { 'WWW-Authenticate': 'Basic realm="surrogate", charset="UTF-8"' },
      })
    }
    const token = requiredToken(parameters)
    const answer = await (token.includes('.') ? introspectJwt : introspectOpaque)(token, caller)
    counter.inc({ outcome: answer.active ? 'active' : 'inactive' })
    return answer
  })
}
