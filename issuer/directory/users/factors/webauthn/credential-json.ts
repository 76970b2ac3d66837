import { z } from 'zod'
import { longestCredentialId } from './authenticator-data.ts'
import { requireThat } from './refusal.ts'

/**
 * The credentials of browsers as JSON: what `PublicKeyCredential.toJSON()` makes (WebAuthn §5.1). Members that are
 * derived from others are not read.
 */

const base64url = (bytes: number) =>
  z
    .string()
    .min(1)
    .max(Math.ceil((bytes * 4) / 3))
    .regex(/^[\w-]+$/, 'must be base64url')

/** In bytes, each far above what browsers send. */
const sizes = { credentialId: longestCredentialId, clientData: 8_192, attestation: 65_536, signature: 1_024 } as const

const credential = <Response extends z.ZodType>(response: Response) =>
  z.object({
    id: base64url(sizes.credentialId),
    rawId: base64url(sizes.credentialId),
    type: z.literal('public-key'),
    response,
    authenticatorAttachment: z.string().max(64).nullish(),
    clientExtensionResults: z.record(z.string(), z.unknown()).optional(),
  })

/** What `navigator.credentials.create()` answers. */
export const registrationCredential = credential(
  z.object({
    clientDataJSON: base64url(sizes.clientData),
    attestationObject: base64url(sizes.attestation),
    transports: z.array(z.string().max(64)).max(16).optional(),
  }),
)
export type RegistrationCredential = z.output<typeof registrationCredential>

/** What `navigator.credentials.get()` answers. */
export const authenticationCredential = credential(
  z.object({
    clientDataJSON: base64url(sizes.clientData),
    authenticatorData: base64url(sizes.attestation),
    signature: base64url(sizes.signature),
    userHandle: base64url(64).nullish(),
  }),
)
export type AuthenticationCredential = z.output<typeof authenticationCredential>

/** Throws `malformed` for what is no base64url, or does not spell its bytes the one way there is. */
export const bytesOf = (text: string): Buffer => {
  const bytes = Buffer.from(text, 'base64url')
  requireThat(bytes.toString('base64url') === text, 'malformed')
  return bytes
}

/** The id of a credential, which is said twice. Throws `malformed` unless it is the same. */
export const credentialIdOf = ({ id, rawId }: { id: string; rawId: string }): Buffer => {
  requireThat(id === rawId, 'malformed')
  return bytesOf(rawId)
}

/** Which passkey to look for. Whether it is the one that answered, `verifyAuthentication` says. */
export const presentedCredentialId = ({ rawId }: Pick<AuthenticationCredential, 'rawId'>): Buffer =>
  Buffer.from(rawId, 'base64url')
