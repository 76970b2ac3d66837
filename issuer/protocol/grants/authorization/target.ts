import type { Query } from '../../../../platform/database/database.ts'
import { OAuthError } from '../../../base/errors/problems.ts'
import type { Audience } from '../../requests/resource.ts'
import { isReserved } from '../../requests/scope.ts'
import type { TokenRequest } from '../grant.ts'
import { organizationAudience, requireMember } from '../organization.ts'
import type { AuthorizationFacts } from './authorization-facts-store.ts'

/** What a token of an authorization is for, and what it may do there. */
export interface Target {
  /** Undefined: an opaque token, for userinfo and what else this issuer itself offers to people. */
  audience: Audience | undefined
  /** In the order of the request. */
  scopes: readonly string[]
}

/** The scope that lets a client ask for tokens of organizations. */
export const organizationsScope = 'urn:logto:scope:organizations'

/** Granted with the authorization itself, whatever the consent lists. */
const implied: ReadonlySet<string> = new Set(['openid', 'offline_access'])

/** Of the names in force those of OIDC, as far as a third-party application is allowed them. */
export const oidcScopes = (
  inForce: readonly string[],
  { consent, isOffline }: AuthorizationFacts,
  isThirdParty: boolean,
): readonly string[] =>
  inForce.filter(
    (name) =>
      isReserved(name) &&
      (isOffline || name !== 'offline_access') &&
      (!isThirdParty || implied.has(name) || consent?.scopes.includes(name)),
  )

/**
 * The target of a request. `inForce` are the scopes granted at the authorization endpoint, or those of them that the
 * request asks for; what a token gets of them is what the person's roles hold now, and what the person allowed a
 * third-party application. Throws `invalid_target` for a resource that was not asked for at the authorization endpoint,
 * 403 for an organization that is out of reach.
 */
export const targetOf = async (
  query: Query,
  request: TokenRequest,
  facts: AuthorizationFacts,
  inForce: readonly string[],
): Promise<Target> => {
  const { organizationId, client } = request
  const { consent, userId } = facts
  const resource = await resourceOf(request, facts, inForce)
  const allowed = (names: readonly string[] | undefined) =>
    client.isThirdParty ? inForce.filter((name) => names?.includes(name)) : inForce
  const ofResource = resource && allowed(consent?.resources[resource.indicator])
  const held = facts.held?.split(' ') ?? []

  if (organizationId !== undefined) {
    if (!facts.scopes.includes(organizationsScope))
      throw new OAuthError('insufficient_scope', 'refresh token missing required scope')
    if (client.isThirdParty && !consent?.organizations.includes(organizationId))
      throw new OAuthError('access_denied', 'The user does not allow this application the organization.', {
        status: 403,
      })
    const scopes = ofResource ?? allowed(consent?.scopes)
    const asked = { organizationId, resourceId: resource?.id, scopes }
    const { granted } = await requireMember(query, { kind: 'user', id: userId }, asked)
    return {
      audience: resource ?? organizationAudience(organizationId),
      scopes: scopes.filter((name) => granted.includes(name) || (resource && held.includes(name))),
    }
  }
  if (ofResource) return { audience: resource, scopes: ofResource.filter((name) => held.includes(name)) }
  return { audience: undefined, scopes: oidcScopes(inForce, facts, client.isThirdParty) }
}

/**
 * The requested resource. Without one: none with `openid` in force or an organization, else the default one, if that is
 * what the authorization request was for.
 */
const resourceOf = async (
  request: TokenRequest,
  { resource, resources }: AuthorizationFacts,
  inForce: readonly string[],
) => {
  const { resource: requested, organizationId } = request
  // A request that names no resource is for the default one.
  const wasAsked =
    resource && (resources.includes(resource.indicator) || (resources.length === 0 && resource.isDefault))
  if (requested === undefined) {
    const isDefaultMeant = wasAsked && organizationId === undefined && !inForce.includes('openid')
    return isDefaultMeant ? resource : undefined
  }
  // It says what is wrong with one that is not registered.
  if (!resource) await request.target({ required: false })
  if (!resource || !wasAsked)
    throw new OAuthError('invalid_target', 'The resource was not part of the authorization request.')
  return resource
}
