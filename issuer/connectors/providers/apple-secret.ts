import { importPKCS8, SignJWT } from 'jose'

export interface AppleKey {
  teamId: string
  clientId: string
  keyId: string
  /** PKCS #8, as Apple's `.p8` file. */
  privateKey: string
  /** Who it is for: Apple's issuer. */
  audience: string
}

/** Apple allows half a year; it is made anew for every request. In seconds. */
const life = 300

/** Apple's client secret is a JWT that the client signs. Throws when the key cannot be read. */
export const appleSecret = async ({ teamId, clientId, keyId, privateKey, audience }: AppleKey, now: Date) => {
  const issuedAt = Math.floor(now.getTime() / 1_000)
  return new SignJWT()
    .setProtectedHeader({ alg: 'ES256', kid: keyId })
    .setIssuer(teamId)
    .setSubject(clientId)
    .setAudience(audience)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + life)
    .sign(await importPKCS8(privateKey, 'ES256'))
}
