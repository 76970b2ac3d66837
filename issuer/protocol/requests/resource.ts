import { OAuthError } from '../../base/errors/problems.ts'

/** A resource that tokens can be issued for (RFC 8707). */
export interface Resource {
  id: string
  /** The `aud` of its tokens. */
  indicator: string
  /** In seconds. */
  accessTokenTtl: number
}

/** What a token is for: a resource, or an organization (`grants/organization.ts`). */
export type Audience = Omit<Resource, 'id'>

/**
 * What clients that know organizations ask for instead of a resource; with `organization_id` it means the organization
 * itself.
 */
export const organizationsResource = 'urn:logto:resource:organizations'

export const unknownResource = (nearest: string | undefined): OAuthError =>
  new OAuthError(
    'invalid_target',
    nearest === undefined
      ? 'The resource is not registered.'
      : `The resource is not registered; indicators must match exactly. Did you mean ${nearest} ?`,
  )

export const malformedResource = (): OAuthError =>
  new OAuthError('invalid_target', 'The resource must be an absolute URI without a fragment.')
