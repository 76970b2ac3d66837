import { consoleClientId } from '../../base/console-roles.ts'
import { problem } from '../../base/errors/problems.ts'
import { type MintAccessToken, newTokenId } from '../../tokens/access-token.ts'
import { issueTime } from '../../tokens/revocations/issue-time.ts'
import type { ConsoleSession } from '../session-store.ts'

/** Who asks gateways: the person of a session of the console, with what they may do now. */
export type Asker = Pick<ConsoleSession, 'user' | 'authorizationId' | 'scopes' | 'revokedUntil'>

/**
 * An access token for gateways with this audience; `isNew`: not one that was used before. It ends with the session,
 * since gateways follow what is revoked. Throws 403 `auth.forbidden` for whom no permission lets ask gateways.
 */
export type TokenFor = (asker: Asker, audience: string, options?: { isNew?: boolean }) => string

/** Seconds. */
const lifetime = 300
/** One that is asked with lives at least this long. In seconds. */
const leeway = 60
const mostKept = 1_000

/** Permissions of the Management API, of which one is enough. */
const permissions = {
  inspect: ['read', 'all'],
  evaluate: ['rbac', 'all'],
  edit: ['all'],
} as const

const scopeOf = (scopes: readonly string[]): string =>
  Object.entries(permissions)
    .filter(([, fitting]) => fitting.some((name) => scopes.includes(name)))
    .map(([name]) => name)
    .join(' ')

export const createTokenFor = ({ mint, now }: { mint: MintAccessToken; now(): Date }): TokenFor => {
  const kept = new Map<string, { token: string; iat: number; exp: number }>()
  return ({ user, authorizationId, scopes, revokedUntil }, aud, { isNew = false } = {}) => {
    const scope = scopeOf(scopes)
    if (scope === '') {
      throw problem('auth.forbidden', {
        detail: 'To ask gateways one needs one of the permissions read, rbac, all.',
        data: { scopes: ['read', 'rbac', 'all'] },
      })
    }
    const time = now()
    const key = JSON.stringify([authorizationId, scope, aud])
    const known = kept.get(key)
    const isRevoked = known && revokedUntil !== null && known.iat <= revokedUntil
    if (known && !isNew && !isRevoked && known.exp - leeway > time.getTime() / 1_000) return known.token
    const iat = Math.floor(issueTime(time, revokedUntil).getTime() / 1_000)
    const exp = iat + lifetime
    const jti = newTokenId()
    const token = mint({ jti, sub: user.id, aud, clientId: consoleClientId, scope, iat, exp, sid: authorizationId })
    kept.delete(key)
    kept.set(key, { token, iat, exp })
    // The oldest is the first.
    for (const oldest of kept.keys()) if (kept.size > mostKept) kept.delete(oldest)
    return token
  }
}
