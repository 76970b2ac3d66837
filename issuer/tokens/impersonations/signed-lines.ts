import { sha256 } from '../../../platform/secret.ts'
import type { SigningKeys } from '../keys/signing-keys.ts'

/**
 * Lines of JSON, and one more that signs them: a JWS over the SHA-256 of all bytes above it, by the key that signs
 * tokens. It has neither `aud` nor `exp`, and a `typ` of its own: it proves what was told and opens nothing.
 */
export const signedLines = (
  lines: readonly unknown[],
  about: { id: string; at: Date },
  { keys, issuer }: { keys: Pick<SigningKeys, 'active'>; issuer: string },
): string => {
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
  const payload = {
    iss: issuer,
    impersonation: about.id,
    iat: Math.floor(about.at.getTime() / 1_000),
    lines: lines.length,
    sha256: sha256(text).toString('base64url'),
  }
  const signer = keys.active()
  const input = `${signer.headers.export}.${Buffer.from(JSON.stringify(payload)).toString('base64url')}`
  const jws = `${input}.${signer.sign(input).toString('base64url')}`
  return `${text}${JSON.stringify({ kind: 'signature', jws })}\n`
}
