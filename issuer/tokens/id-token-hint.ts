import { JwtError } from '../../platform/jwt/jwt-error.ts'
import { parseJwt } from '../../platform/jwt/parse.ts'
import { verifySignature } from '../../platform/jwt/verify.ts'
import type { SigningKeys } from './keys/signing-keys.ts'

/** What an ID token that a client sends back says: whose it is, of which client, and of which authorization. */
export interface IdTokenHint {
  userId: string
  clientId: string
  sid: string | undefined
}

export type VerifyIdTokenHint = (token: string) => Promise<IdTokenHint>

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

/**
 * Verifies an `id_token_hint` (OpenID Connect Core §3.1.2.1, RP-Initiated Logout §2): an ID token of this issuer,
 * signed with a key that is still published. It may have expired: it says who somebody was, and opens nothing. Whether
 * `clientId` is the right one is for the caller to check. Throws `JwtError`.
 */
export const createIdTokenHintVerifier =
  ({ keys, issuer }: { keys: Pick<SigningKeys, 'find'>; issuer: string }): VerifyIdTokenHint =>
  async (token) => {
    const jwt = parseJwt(token)
    // RFC 8725 §3.11: every other token of ours says its type, ID tokens have none.
    if (jwt.header.typ !== undefined) throw new JwtError('type', 'The token is no ID token.')
    const key = await keys.find(jwt.header.kid)
    if (!key) throw new JwtError('unknown_key', 'The token is not signed with a key of this issuer.')
    if (jwt.header.alg !== key.alg) throw new JwtError('algorithm', 'The token names another algorithm than its key.')
    if (!verifySignature(jwt, key)) throw new JwtError('signature', 'The signature of the token is not valid.')
    const { iss, sub, aud, sid } = jwt.claims
    if (iss !== issuer) throw new JwtError('issuer', 'The token is from another issuer.')
    if (!isText(sub) || !isText(aud)) throw new JwtError('claims', 'The token names no subject or no client.')
    return { userId: sub, clientId: aud, sid: isText(sid) ? sid : undefined }
  }
