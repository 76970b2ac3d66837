import { OAuthError } from '../../../base/errors/problems.ts'
import type { Audience, Resource } from '../../requests/resource.ts'
import { isReserved, isUserinfoScope } from '../../requests/scope.ts'
import type { InOrganization } from '../organization.ts'
import type { ExchangeFacts } from './exchange-facts-store.ts'

/** A resource that is registered but not the one the subject token is bound to is still the wrong target. */
export const requireBoundResource = ({ boundResource }: ExchangeFacts, resource: Audience | undefined): void => {
  if (boundResource === null || boundResource === resource?.indicator) return
  throw new OAuthError('invalid_target', 'The subject token is bound to another resource.')
}

/**
 * The requested scopes that the subject may have, in their order. With a resource: what its roles hold there, including
 * those in the organization, and `openid`. With only an organization: what its roles there hold. With neither: userinfo
 * scopes. A bound subject token refuses others (`invalid_scope`); a personal access token drops them.
 */
export const grantableScopes = (
  asked: readonly string[],
  { granted, boundScopes, personalAccessToken }: ExchangeFacts,
  resource: Resource | undefined,
  organization: InOrganization | undefined,
): readonly string[] => {
  const beyond = boundScopes ? asked.filter((name) => !isReserved(name) && !boundScopes.includes(name)) : []
  if (beyond.length > 0) {
    throw new OAuthError(
      'invalid_scope',
      `The subject token does not allow the scope ${beyond.slice(0, 10).join(', ')}.`,
    )
  }
  const held = [...(granted?.split(' ') ?? []), ...(organization?.granted ?? [])]
  const isHeld = (name: string) => held.includes(name) || (resource !== undefined && name === 'openid')
  const mayHave = resource || organization ? isHeld : isUserinfoScope
  const limits = [boundScopes, personalAccessToken?.scopes].filter((names) => names != null)
  return asked.filter((name) => mayHave(name) && limits.every((names) => names.includes(name)))
}
