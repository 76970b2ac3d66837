import { maxResultBytes } from './sandbox/messages.ts'

/** What a script returned, checked: what becomes claims of a token, and what is left out of them. */
export type CheckedResult =
  | { claims: Readonly<Record<string, unknown>>; dropped: readonly string[] }
  /** Why it cannot be the claims of a token. */
  | { wrong: string }

const maxResultDepth = 8

/**
 * Claims that only the issuer sets, and those whose meaning others rely on, by who says what they mean: every claim
 * that a rule of ours trusts is here.
 */
const reservedBy = {
  'RFC 7519 §4.1': ['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti'],
  'RFC 7515 §4.1.9': ['typ'],
  'RFC 8693 §4': ['scope', 'client_id', 'act', 'may_act'],
  'RFC 7800 §3.1': ['cnf'],
  'OpenID Connect Core §2, §3.1.3.6': ['auth_time', 'acr', 'amr', 'azp', 'nonce', 'at_hash'],
  'OpenID Connect Session Management': ['sid'],
  // `access`: whether an impersonation only reads.
  'this issuer': ['organization_id', 'access'],
}

export const reservedClaims: ReadonlySet<string> = new Set(Object.values(reservedBy).flat())

/** Names that a careless reader of the token, merging it into an object, would take for the object's own inner life. */
const harmfulNames: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

/** `text` is the JSON of what the script returned; undefined when that has none, as a function has not. */
export const checkResult = (text: string | undefined): CheckedResult => {
  if (text === undefined) return { wrong: 'It returned nothing that can be a claim: an object is needed.' }
  if (Buffer.byteLength(text) > maxResultBytes)
    return { wrong: `It returned more than ${maxResultBytes} bytes of JSON.` }
  const value: unknown = JSON.parse(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return {
      wrong: `It returned ${value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`}: an object is needed.`,
    }
  }
  if (isDeeperThan(maxResultDepth, value))
    return { wrong: `It returned something nested more than ${maxResultDepth} deep.` }
  const dropped: string[] = []
  const left = Object.entries(value).filter(([name]) => {
    const isKept = !reservedClaims.has(name) && !harmfulNames.has(name)
    if (!isKept) dropped.push(name)
    return isKept
  })
  return { claims: Object.fromEntries(left.map(([name, inner]) => [name, harmless(inner, dropped)])), dropped }
}

/** Goes no deeper than that itself. */
const isDeeperThan = (levels: number, value: unknown): boolean => {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((inner) => isDeeperThan(levels - 1, inner))
}

const harmless = (value: unknown, dropped: string[]): unknown => {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((inner) => harmless(inner, dropped))
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) => {
      if (!harmfulNames.has(name)) return [[name, harmless(inner, dropped)]]
      dropped.push(name)
      return []
    }),
  )
}
