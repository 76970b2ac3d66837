import { randomUUID } from 'node:crypto'
import { type SigningAlgorithmName, signingAlgorithmNames } from '../keys/signing-algorithms.ts'
import type { SigningKeys } from '../keys/signing-keys.ts'

export interface LogoutClaims {
  sub: string
  /** `aud` */
  clientId: string
  /** The authorization that has ended, as its ID tokens name it. */
  sid: string
  /** In seconds. */
  iat: number
}

/** Of a logout token, in seconds. */
export const logoutTokenTtl = 120

export interface LogoutTokenMint {
  /** Those there is a key for now. */
  algorithms(): SigningAlgorithmName[]
  /** `algorithm`: that of the client's ID tokens. Undefined while there is no key for it. */
  mint(claims: LogoutClaims, algorithm: SigningAlgorithmName | undefined): string | undefined
}

/**
 * Signs logout tokens (Back-Channel Logout §2.4). Their type and `events` tell them from every other token, and there
 * is no `nonce`: nobody can use one as an ID token.
 */
export const createLogoutTokenMint = ({
  keys,
  issuer,
}: {
  keys: Pick<SigningKeys, 'idTokenSigner'>
  issuer: string
}): LogoutTokenMint => ({
  algorithms: () => signingAlgorithmNames.filter((name) => keys.idTokenSigner(name)),
  mint({ sub, clientId, sid, iat }, algorithm) {
    const signer = keys.idTokenSigner(algorithm)
    if (!signer) return undefined
    const payload = JSON.stringify({
      ...{ iss: issuer, aud: clientId, iat, exp: iat + logoutTokenTtl, jti: randomUUID(), sub, sid },
      events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
    })
    const input = `${signer.headers.logout}.${Buffer.from(payload).toString('base64url')}`
    return `${input}.${signer.sign(input).toString('base64url')}`
  },
})
