import { problem } from './errors/problems.ts'

// RFC 6750 §2.1: the scheme is case-insensitive (RFC 9110 §11.1), the token is b64token.
const bearer = /^bearer +([\w\-.~+/]+=*)$/i
const challenge = { 'WWW-Authenticate': 'Bearer' }
export const invalidToken = { 'WWW-Authenticate': 'Bearer error="invalid_token"' }

/** The access token of an `Authorization` header. Throws 401. */
export const bearerToken = (header: string | undefined): string => {
  if (header === undefined) throw problem('auth.authorization_header_missing', { headers: challenge })
  if (!/^bearer( |$)/i.test(header)) {
    throw problem('auth.authorization_token_type_not_supported', {
      detail: 'Use "Authorization: Bearer <access token>".',
      headers: challenge,
    })
  }
  const token = bearer.exec(header)?.[1]
  if (token === undefined) throw problem('auth.unauthorized', { headers: invalidToken })
  return token
}
