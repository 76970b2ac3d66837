import { OAuthError } from '../../../platform/problem.ts'
import type { Resource } from '../../oauth/resource.ts'
import { isReserved, isUserinfoScope } from '../../oauth/scope.ts'
import type { ExchangeFacts } from './exchange-facts-store.ts'

/** A resource that is registered but not the one the subject token is bound to is still the wrong target. */
export const requireBoundResource = ({ boundResource }: ExchangeFacts, resource: Resource | undefined): void => {
  if (boundResource === null || boundResource === resource?.indicator) return
  throw new OAuthError('invalid_target', 'The subject token is bound to another resource.')
}

/**
 * Of the scopes asked for, in their order, what the subject may have: on a resource what its roles hold there, and `openid`; without
 * a resource what userinfo knows. A subject token bound to scopes allows no others (`invalid_scope`); a personal access token with scopes
 * leaves the others out.
 */
export const grantableScopes = (
  asked: readonly string[],
  { granted, boundScopes, personalAccessToken }: ExchangeFacts,
  resource: Resource | undefined,
): readonly string[] => {
  const beyond = boundScopes ? asked.filter((name) => !isReserved(name) && !boundScopes.includes(name)) : []
  if (beyond.length > 0) {
    throw new OAuthError(
      'invalid_scope',
      `The subject token does not allow the scope ${beyond.slice(0, 10).join(', ')}.`,
    )
  }
  const held = granted?.split(' ') ?? []
  const mayHave = resource ? (name: string) => name === 'openid' || held.includes(name) : isUserinfoScope
  const limits = [boundScopes, personalAccessToken?.scopes].filter((names) => names != null)
  return asked.filter((name) => mayHave(name) && limits.every((names) => names.includes(name)))
}
