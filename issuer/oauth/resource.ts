import { OAuthError } from '../../platform/problem.ts'

/** A resource that tokens can be issued for (RFC 8707). */
export interface Resource {
  id: string
  /** The `aud` of its tokens. */
  indicator: string
  /** In seconds. */
  accessTokenTtl: number
}

export const unknownResource = (nearest: string | undefined): OAuthError =>
  new OAuthError(
    'invalid_target',
    nearest === undefined
      ? 'The resource is not registered.'
      : `The resource is not registered; indicators must match exactly. Did you mean ${nearest} ?`,
  )

export const malformedResource = (): OAuthError =>
  new OAuthError('invalid_target', 'The resource must be an absolute URI without a fragment.')
