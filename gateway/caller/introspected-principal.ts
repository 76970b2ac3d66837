import { JwtError } from '../../platform/jwt/jwt-error.ts'
import { verifyClaims } from '../../platform/jwt/verify.ts'
import { PolicyError } from '../../policies/decide.ts'
import { type Principal, principalOf } from '../request/principal.ts'

/** An answer that no issuer should give. The message is for operators, and never quotes the answer. */
export class UnusableAnswer extends Error {}

/** A token that is active, and not good here. The message may be shown to the client. */
export class RefusedToken extends Error {}

type Members = Readonly<Record<string, unknown>>

/**
 * Who an opaque token speaks for, of the members of an answer (RFC 7662 §2.2). They are held to what a JWT of the same
 * issuer is held to, its audience included, which the caller compares. What the question has settled may be absent:
 * `iss`; `exp`, in whose place the answer counts until `until` (ms since the epoch); `iat`, 0 then, so that every
 * revocation covers the token; and `sub` of a client's own token, which is its `client_id` (RFC 9068 §2.2).
 *
 * Throws `RefusedToken` and `UnusableAnswer`.
 */
export const introspectedPrincipal = (
  members: Members,
  options: { issuer: string; clockSkewSeconds: number; now: Date; until: number },
): Principal => {
  const { issuer, clockSkewSeconds, now, until } = options
  const { iss = issuer, exp = Math.floor(until / 1000), iat = 0, sub = clientOf(members) } = members
  if (iss !== issuer) throw new UnusableAnswer('its answer names another issuer')
  checkKind(members)
  if (sub === undefined) throw new RefusedToken('The issuer does not say whose token it is.')
  try {
    const claims = verifyClaims(
      { ...members, iss, sub, exp, iat },
      { issuer, audience: undefined, clockSkewSeconds, now },
    )
    return { ...principalOf(claims), askAgainAt: Math.min(until, claims.exp * 1000) }
  } catch (error) {
    if (error instanceof JwtError && error.reason !== 'claims') throw new RefusedToken(error.message)
    if (error instanceof JwtError || error instanceof PolicyError) {
      throw new UnusableAnswer(`its answer cannot be used: ${error.message}`)
    }
    throw error
  }
}

/** A user's token whose user is not told is nobody's. */
const clientOf = ({ client_id, username }: Members): unknown => (username === undefined ? client_id : undefined)

/** Endpoints answer about refresh tokens too (RFC 7662 §2.1), and say so in one of these, or name no audience. */
const kinds: Readonly<Record<string, RegExp>> = {
  token_type: /^(?:bearer|dpop)$/i,
  token_use: /^access(?:_token)?$/,
}

const checkKind = (members: Members): void => {
  for (const [name, accepted] of Object.entries(kinds)) {
    const value = members[name]
    if (value === undefined) continue
    if (typeof value !== 'string') throw new UnusableAnswer(`${name} of its answer is not a string`)
    if (!accepted.test(value)) throw new RefusedToken('The token is not an access token.')
  }
  const { aud, cnf, token_type } = members
  if (aud === undefined || (Array.isArray(aud) && aud.length === 0)) {
    throw new RefusedToken('The issuer does not say for which audience the token is.')
  }
  // RFC 9449 §6.2: without the key nobody could tell whose proof would be the right one.
  if (/^dpop$/i.test(String(token_type)) && (cnf as { jkt?: unknown } | null | undefined)?.jkt === undefined) {
    throw new RefusedToken('The issuer does not say to which key the token is bound.')
  }
}
