import { OAuthError } from '../base/errors/problems.ts'
import type { SigningAlgorithmName } from './keys/signing-algorithms.ts'
import type { SigningKeys } from './keys/signing-keys.ts'

/**
 * The claims of an ID token (OpenID Connect Core §2); times in seconds. `mint` adds `iss`. There is no `at_hash`, which
 * the code flow does not need, no `azp`, and no `typ`.
 */
export interface IdTokenClaims {
  sub: string
  /** `aud` */
  clientId: string
  iat: number
  exp: number
  authTime: number
  amr: readonly string[]
  acr: string
  sid: string
  /** Of the authorization request; never in a token of a refresh. */
  nonce?: string | undefined
  /** What the scopes tell of the user; never one of the others. */
  about: Readonly<Record<string, unknown>>
}

/** `algorithm` undefined: whatever this issuer signs with. Throws 503 while there is no key for it. */
export type MintIdToken = (claims: IdTokenClaims, algorithm: SigningAlgorithmName | undefined) => string

export const createIdTokenMint =
  ({ keys, issuer }: { keys: Pick<SigningKeys, 'idTokenSigner'>; issuer: string }): MintIdToken =>
  ({ clientId, authTime, about, nonce, ...claims }, algorithm) => {
    const signer = keys.idTokenSigner(algorithm)
    if (!signer) {
      throw new OAuthError('temporarily_unavailable', 'There is no key yet for the algorithm of this client.')
    }
    // What describes the user comes first: whatever has the same name stands.
    const payload = JSON.stringify({ ...about, iss: issuer, ...claims, aud: clientId, auth_time: authTime, nonce })
    const input = `${signer.headers.id}.${Buffer.from(payload).toString('base64url')}`
    return `${input}.${signer.sign(input).toString('base64url')}`
  }
