import type { AuthorizationRequest } from './authorization-request.ts'

/**
 * What a client gets: a code, none where none is wanted, or an error of OAuth 2.0 (RFC 6749 §4.1.2.1, OpenID Connect
 * Core §3.1.2.6).
 */
export type AuthorizationResult = { code: string } | { code: undefined } | { error: string; description: string }

/** How it gets there: by a redirect, or by a form that its user's browser posts (OAuth 2.0 Form Post Response Mode). */
export type AuthorizationResponse =
  | { location: string }
  | { formPost: { action: string; fields: Readonly<Record<string, string>> } }

/** RFC 9207: `iss` stands in every response, errors too. `issuer` is that of discovery. */
export const authorizationResponse = (
  { redirectUri, responseMode, state }: Pick<AuthorizationRequest, 'redirectUri' | 'responseMode' | 'state'>,
  result: AuthorizationResult,
  issuer: string,
): AuthorizationResponse => {
  // Our own pages know the person by the session.
  if ('code' in result && result.code === undefined) return { location: redirectUri }
  const fields = {
    ...('code' in result ? { code: result.code } : { error: result.error, error_description: result.description }),
    ...(state === undefined ? {} : { state }),
    iss: issuer,
  }
  if (responseMode === 'form_post') return { formPost: { action: redirectUri, fields } }
  const text = new URLSearchParams(fields).toString()
  if (responseMode === 'fragment') return { location: `${redirectUri}#${text}` }
  // RFC 6749 §3.1.2: a query that the redirect URI has is kept.
  return { location: `${redirectUri}${redirectUri.includes('?') ? '&' : '?'}${text}` }
}
