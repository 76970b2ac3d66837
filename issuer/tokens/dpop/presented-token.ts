import type { IncomingMessage, ServerResponse } from 'node:http'
import { OAuthError, problem } from '../../base/errors/problems.ts'
import type { Proof, Proofs } from './proofs.ts'

/** The access token in the field `Authorization` of a request to one of our own APIs. */
export interface PresentedToken {
  token: string
  /** Of the scheme `DPoP`: good, but to be used up. Undefined: it is sent as a bearer token. */
  proof: Pick<Proof, 'thumbprint' | 'use'> | undefined
}

/** The request as it came: within a router its `url` is shorter. */
type ApiRequest = IncomingMessage & { originalUrl: string }

// RFC 6750 §2.1, RFC 9449 §7.1: the scheme is case-insensitive (RFC 9110 §11.1), the token is b64token.
const presented = /^(bearer|dpop) +([\w\-.~+/]+=*)$/i
const challenge = { 'WWW-Authenticate': 'Bearer' }
export const invalidToken = { 'WWW-Authenticate': 'Bearer error="invalid_token"' }

/** Throws 401, as `proof.use` does. */
export const readPresentedToken = (
  proofs: Pick<Proofs, 'forToken'>,
  request: ApiRequest,
  response: ServerResponse,
): PresentedToken => {
  const { authorization } = request.headers
  if (authorization === undefined) throw problem('auth.authorization_header_missing', { headers: challenge })
  if (!/^(bearer|dpop)( |$)/i.test(authorization)) {
    throw problem('auth.authorization_token_type_not_supported', {
      detail: 'Use "Authorization: Bearer <access token>".',
      headers: challenge,
    })
  }
  const [, scheme = '', token] = presented.exec(authorization) ?? []
  if (token === undefined) throw problem('auth.unauthorized', { headers: invalidToken })
  if (scheme.toLowerCase() !== 'dpop') return { token, proof: undefined }
  try {
    const path = request.originalUrl.split('?', 1)[0] ?? ''
    const { thumbprint, use } = proofs.forToken(request, response, path, token)
    return { token, proof: { thumbprint, use: () => use().catch(refuse) } }
  } catch (error) {
    return refuse(error)
  }
}

/** What is wrong with a proof, in the words of our APIs. */
const refuse = (error: unknown): never => {
  if (!(error instanceof OAuthError)) throw error
  throw problem('auth.unauthorized', { detail: error.message, headers: error.headers })
}
