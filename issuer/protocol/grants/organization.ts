import type { Query } from '../../../platform/database/database.ts'
import { OAuthError } from '../../base/errors/problems.ts'
import { findOrganizationAccess, type OrganizationAccess } from '../../directory/organizations/members/access-store.ts'
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

/** Of a token for an organization itself; no API resource can be registered under such an `aud`. */
export const organizationAudience = (id: string): Audience => ({
  // What existing clients look for.
  indicator: `urn:logto:organization:${id}`,
  accessTokenTtl,
})

const notMember: Record<MemberKind, string> = {
  user: 'The user is not a member of the organization.',
  application: 'The application does not belong to the organization.',
}

const factorMissing = 'The organization requires multi-factor authentication, and the user has no factor for it.'

/**
 * What a member may have there. Throws 403 `access_denied` for others, when there is no such organization, and when it
 * asks for a factor that the user does not have.
 */
export const requireMember = async (
  query: Query,
  member: { kind: MemberKind; id: string },
  asked: { organizationId: string; resourceId: string | undefined; scopes: readonly string[] },
): Promise<OrganizationAccess> => {
  const access = await findOrganizationAccess(query, member, asked)
  if (!access.isMember) throw new OAuthError('access_denied', notMember[member.kind], { status: 403 })
  if (access.isFactorMissing) throw new OAuthError('access_denied', factorMissing, { status: 403 })
  return access
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
  const access = await requireMember(query, member, { organizationId, resourceId, scopes })
  if (target.status === 'rejected') throw target.reason
  if (target.value) return { audience: target.value, granted: access.granted }
  const audience = organizationAudience(organizationId)
  requireDefined(scopes, access.defined, audience.indicator)
  return { audience, granted: access.granted }
}
