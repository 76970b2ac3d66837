import { supportedAlgorithms } from '../../platform/jwt/algorithms.ts'
import type { AppError } from '../../platform/problem.ts'
import { problem } from './problems.ts'

/** What a route tells a client that lacks a good token. */
interface ChallengeRules {
  /** Whether it takes tokens by the scheme DPoP, and no others. */
  readonly dpop?: 'required' | 'accepted' | undefined
  readonly resourceMetadata: string | undefined
}

/**
 * The header fields of a refusal: the challenge of the scheme that the client used, or those of all schemes that the
 * route takes (RFC 9449 §7.2). Each tells where the metadata of the resource are (RFC 9728 §5.1).
 */
export const challengeFields = (
  { headers: fields }: AppError,
  route: ChallengeRules | undefined,
  authorization: string | undefined,
): Readonly<Record<string, string>> => {
  const challenge = fields['www-authenticate']
  if (challenge === undefined || !route) return fields
  const { dpop, resourceMetadata } = route
  const space = challenge.indexOf(' ')
  const error = space < 0 ? [] : [challenge.slice(space + 1)]
  const metadata = resourceMetadata === undefined ? [] : [`resource_metadata="${resourceMetadata}"`]
  const bearer = ['Bearer', [...error, ...metadata].join(', ')].filter(Boolean).join(' ')
  const byDpop = (told: readonly string[]) => `DPoP ${[...told, algorithmsParameter, ...metadata].join(', ')}`
  const challenges = () => {
    if (dpop === undefined) return [bearer]
    const usedDpop = /^dpop(?: |$)/i.test(authorization ?? '')
    return dpop === 'required' || usedDpop ? [byDpop(error)] : [bearer, byDpop([])]
  }
  return { ...fields, 'www-authenticate': challenges().join(', ') }
}

const algorithmsParameter = `algs="${supportedAlgorithms.join(' ')}"`

/**
 * The refusals of RFC 6750 §3, RFC 9449 §7.1 and RFC 9470 §3, each with its challenge. `detail` is one of our own
 * sentences: quoted without escaping.
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

/** RFC 9449 §7.1. `nonce` is for the client's next proof. */
export const invalidProof = (detail: string, nonce: string): AppError =>
  problem('invalid_dpop_proof', {
    detail,
    headers: {
      'www-authenticate': `DPoP error="invalid_dpop_proof", error_description="${detail}"`,
      'dpop-nonce': nonce,
    },
  })

/** RFC 9449 §9: the client repeats its request with a new proof. */
export const proofNeedsNonce = (nonce: string): AppError =>
  problem('use_dpop_nonce', {
    headers: {
      'www-authenticate': 'DPoP error="use_dpop_nonce", error_description="The proof needs the nonce of this answer."',
      'dpop-nonce': nonce,
    },
  })

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
