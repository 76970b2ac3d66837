import type { AppError } from '../../platform/problem.ts'
import { problem } from './problems.ts'

/** The header fields of a refusal, its challenge telling where the metadata of the resource are (RFC 9728 §5.1). */
export const challengeFields = (
  { headers }: AppError,
  resourceMetadata: string | undefined,
): Readonly<Record<string, string>> => {
  const challenge = headers['www-authenticate']
  if (challenge === undefined || resourceMetadata === undefined) return headers
  const separator = challenge === 'Bearer' ? ' ' : ', '
  return { ...headers, 'www-authenticate': `${challenge}${separator}resource_metadata="${resourceMetadata}"` }
}

/**
 * The refusals of RFC 6750 §3 and RFC 9470 §3, each with its challenge. `detail` is one of our own sentences: quoted
 * without escaping.
 */

/** No token, or another scheme: RFC 6750 §3.1 wants no error code then. */
export const tokenMissing = (): AppError => problem('token_missing', { headers: { 'www-authenticate': 'Bearer' } })

export const invalidToken = (detail: string): AppError =>
  problem('invalid_token', {
    detail,
    headers: { 'www-authenticate': `Bearer error="invalid_token", error_description="${detail}"` },
  })

export const insufficientScope = (options: {
  scopes: readonly string[]
  status: 401 | 403
  detail?: string | undefined
}): AppError => {
  const scope = options.scopes.length > 0 ? `, scope="${options.scopes.join(' ')}"` : ''
  return problem('insufficient_scope', {
    ...(options.detail === undefined ? {} : { detail: options.detail }),
    status: options.status,
    data: { reason: 'insufficient_scope' },
    headers: { 'www-authenticate': `Bearer error="insufficient_scope"${scope}` },
  })
}

/**
 * RFC 9470 §3: how the user must have signed in, to be repeated in an authorization request. `maxAuthAge` in ms; its
 * settings take whole seconds only.
 */
export const insufficientUserAuthentication = (options: {
  acr: readonly string[]
  maxAuthAge?: number | undefined
  detail: string
}): AppError => {
  const { acr, maxAuthAge, detail } = options
  const parameters = [
    `error_description="${detail}"`,
    ...(acr.length > 0 ? [`acr_values="${acr.join(' ')}"`] : []),
    ...(maxAuthAge === undefined ? [] : [`max_age="${maxAuthAge / 1000}"`]),
  ]
  return problem('insufficient_user_authentication', {
    detail,
    headers: { 'www-authenticate': `Bearer error="insufficient_user_authentication", ${parameters.join(', ')}` },
  })
}
