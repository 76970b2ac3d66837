import { OAuthError } from '../../../base/errors/problems.ts'
import { tokenDigest } from '../../../tokens/token-digest.ts'
import type { Parameters } from '../../requests/parameters.ts'

/** RFC 6749 §6 */
export interface RefreshRequest {
  refreshToken: string
  digest: Buffer
  organizationId: string | undefined
  /** With a `scope` the request narrows what was granted; without one it means all of it. */
  narrows: boolean
}

export const readRefreshRequest = (parameters: Parameters): RefreshRequest => {
  const refreshToken = parameters.get('refresh_token')
  if (refreshToken === undefined) {
    throw new OAuthError('invalid_request', 'Missing required parameter: refresh_token.')
  }
  return {
    refreshToken,
    digest: tokenDigest('refresh-token', refreshToken),
    organizationId: parameters.get('organization_id'),
    narrows: parameters.has('scope'),
  }
}
