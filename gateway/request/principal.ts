import type { VerifiedClaims } from '../../platform/jwt/verify.ts'
import { type PolicyInput, principalInput } from '../../policies/decide.ts'

/** Who a verified token speaks for; made once per token and cached with it. */
export interface Principal {
  readonly claims: VerifiedClaims
  /** `aud` as a list. */
  readonly audience: readonly string[]
  /** The members of the policy input that come from the token. */
  readonly input: Pick<PolicyInput, 'token' | 'subject' | 'actor' | 'client' | 'organization'>
  /** `x-auth-*` for the upstream: name, value, name, value, … */
  readonly identityHeaders: readonly string[]
}

/**
 * Visible ASCII without `%` and `,` stands as it is; everything else is percent-encoded UTF-8. One spelling for every
 * value.
 */
const encode = (value: string): string =>
  value.replace(/[^\x21-\x24\x26-\x2b\x2d-\x7e]+/g, (characters) => encodeURIComponent(characters))

/**
 * A member without a value has no header. `x-auth-scope` is separated by spaces, `x-auth-act-chain` by commas (present
 * actor first); after splitting, each item is read with any percent-decoder. Throws `PolicyError` for claims that
 * cannot be read.
 */
export const principalOf = (claims: VerifiedClaims): Principal => {
  const input = principalInput(claims)
  const { token, subject, actor, client } = input
  const values = {
    'x-auth-sub': subject && encode(subject.id),
    'x-auth-act': actor && encode(actor.id),
    'x-auth-act-chain': actor?.chain.map(encode).join(','),
    'x-auth-scope': token?.scopes.map(encode).join(' '),
    'x-auth-client-id': client && encode(client.id),
    'x-auth-sid': token?.sid && encode(token.sid),
  }
  return {
    claims,
    audience: token!.aud,
    input,
    identityHeaders: Object.entries(values).flatMap(([name, value]) => (value ? [name, value] : [])),
  }
}

/** All that may say who asks. */
export const identityFields: readonly string[] = [
  ...['x-auth-sub', 'x-auth-act', 'x-auth-act-chain', 'x-auth-scope', 'x-auth-client-id', 'x-auth-sid'],
  'x-auth-assertion',
]
