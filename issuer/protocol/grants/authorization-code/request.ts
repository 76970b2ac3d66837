import { createHash, timingSafeEqual } from 'node:crypto'
import { OAuthError } from '../../../base/errors/problems.ts'
import { tokenDigest } from '../../../tokens/token-digest.ts'
import type { Parameters } from '../../requests/parameters.ts'

/** RFC 6749 §4.1.3, RFC 7636 §4.5 */
export interface CodeRequest {
  digest: Buffer
  redirectUri: string
  codeVerifier: string | undefined
  organizationId: string | undefined
  /** When the request arrived, in ms of `performance.now()`. */
  arrivedAt: number
}

export const readCodeRequest = (parameters: Parameters): CodeRequest => {
  const code = parameters.get('code')
  const redirectUri = parameters.get('redirect_uri')
  if (code === undefined || redirectUri === undefined) {
    const missing = ['code', 'redirect_uri'].filter((name) => !parameters.has(name))
    throw new OAuthError('invalid_request', `Missing required parameter: ${missing.join(', ')}.`)
  }
  return {
    digest: tokenDigest('authorization-code', code),
    redirectUri,
    codeVerifier: parameters.get('code_verifier'),
    organizationId: parameters.get('organization_id'),
    arrivedAt: performance.now(),
  }
}

// RFC 7636 §4.1
const verifierSyntax = /^[A-Za-z0-9\-._~]{43,128}$/

/**
 * Whether the verifier is that of the challenge (RFC 7636 §4.6). A verifier without a challenge and a challenge without
 * a verifier do not fit, so that PKCE cannot be taken away on the way (RFC 9700 §2.1.1). `wrong`: it looks like one.
 */
export const checkVerifier = (verifier: string | undefined, challenge: string | null): 'right' | 'unfit' | 'wrong' => {
  if (challenge === null) return verifier === undefined ? 'right' : 'unfit'
  if (verifier === undefined || !verifierSyntax.test(verifier)) return 'unfit'
  const own = Buffer.from(createHash('sha256').update(verifier).digest('base64url'))
  const expected = Buffer.from(challenge)
  return own.length === expected.length && timingSafeEqual(own, expected) ? 'right' : 'wrong'
}
