import type { Query } from '../../../platform/database/database.ts'
import { OAuthError } from '../../base/errors/problems.ts'
import { findOrganizationAccess } from '../../directory/organizations/members/access-store.ts'
import type { MemberKind } from '../../directory/organizations/members/member-store.ts'
import type { Audience, Resource } from '../requests/resource.ts'
import { requireDefined } from '../requests/scope.ts'
import type { TokenRequest } from './grant.ts'

/**
 * What a request that names an organization can have: a token for a resource, in that organization, or one for the
 * organization itself.
 */
export interface InOrganization {
  audience: Audience
  /**
   * The requested scopes that the member's roles in the organization hold. For a resource these are added to those of
   * its other roles.
   */
  granted: readonly string[]
}

/** Of a token for an organization itself, in seconds. */
const accessTokenTtl = 3600

/** The `aud` that existing clients look for. No API resource can be registered under such a name. */
const organizationIndicator = (id: string): string => `urn:logto:organization:${id}`

const notMember: Record<MemberKind, string> = {
  user: 'The user is not a member of the organization.',
  application: 'The application does not belong to the organization.',
}

/**
 * Undefined for a request that names no organization. Throws 403 `access_denied` for somebody who does not belong to
 * it, and the same when there is no such organization; then what is wrong with the resource; then `invalid_scope`. One
 * round trip.
 */
export const enterOrganization = async (
  query: Query,
  { organizationId, scopes }: Pick<TokenRequest, 'organizationId' | 'scopes'>,
  member: { kind: MemberKind; id: string },
  target: PromiseSettledResult<Resource | undefined>,
): Promise<InOrganization | undefined> => {
  if (organizationId === undefined) return undefined
  const resourceId = target.status === 'fulfilled' ? target.value?.id : undefined
  const access = await findOrganizationAccess(query, member, { organizationId, resourceId, scopes })
  if (!access.isMember) throw new OAuthError('access_denied', notMember[member.kind], { status: 403 })
  if (target.status === 'rejected') throw target.reason
  if (target.value) return { audience: target.value, granted: access.granted }
  const audience = { indicator: organizationIndicator(organizationId), accessTokenTtl }
  requireDefined(scopes, access.defined, audience.indicator)
  return { audience, granted: access.granted }
}
