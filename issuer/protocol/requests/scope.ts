import { OAuthError } from '../../base/errors/problems.ts'

/**
 * Scope names are exact and case-sensitive; there are no wildcards. A name that is neither defined on the resource nor
 * reserved is an error; one that is defined but not granted is left out, and the answer's `scope` tells.
 */

/** Names with a meaning of their own; asking for them is never an error. */
const reserved = new Set([
  ...['openid', 'offline_access', 'profile', 'email', 'phone', 'address'],
  ...['custom_data', 'identities', 'roles'],
])

export const isReserved = (name: string): boolean => reserved.has(name) || name.startsWith('urn:logto:scope:')

/** No refresh token comes from the grants that use this, so `offline_access` is never granted. */
export const isUserinfoScope = (name: string): boolean => isReserved(name) && name !== 'offline_access'

// RFC 6749 §3.3: scope-token = 1*( %x21 / %x23-5B / %x5D-7E )
const scopeSyntax = /^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/
const maxNames = 256

/** The requested names, each once, in order. Absent or empty: none. Throws `invalid_scope`. */
export const parseScope = (scope: string | undefined): readonly string[] => {
  if (scope === undefined) return []
  if (!scopeSyntax.test(scope))
    throw new OAuthError('invalid_scope', 'The scope contains a character that is not allowed.')
  if (!scope.includes(' ')) return [scope]
  const names = [...new Set(scope.split(' '))].filter((name) => name !== '')
  if (names.length > maxNames) throw new OAuthError('invalid_scope', `More than ${maxNames} scopes are asked for.`)
  return names
}

/**
 * True when nothing but reserved names is asked for, and at least one: such a request is for userinfo, not for an API.
 */
export const isOidcOnly = (requested: readonly string[]): boolean => requested.length > 0 && requested.every(isReserved)

/** Throws `invalid_scope` naming what is neither defined on the resource nor reserved. */
export const requireDefined = (
  requested: readonly string[],
  defined: readonly string[],
  indicator: string | undefined,
) => {
  const unknown = requested.filter((name) => !defined.includes(name) && !isReserved(name))
  if (unknown.length === 0) return
  const where = indicator === undefined ? 'without a resource' : `on the resource ${indicator}`
  throw new OAuthError(
    'invalid_scope',
    `There is no scope ${unknown.slice(0, 10).join(', ')} ${where}; names must match exactly.`,
  )
}
