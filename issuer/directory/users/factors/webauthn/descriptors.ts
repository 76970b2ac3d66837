/** A credential as options name it. */
export interface KnownCredential {
  credentialId: Buffer
  transports: readonly string[]
}

export const toDescriptor = ({ credentialId, transports }: KnownCredential) => ({
  id: credentialId.toString('base64url'),
  type: 'public-key' as const,
  transports: [...transports],
})

/** How long the browser waits for the person, in ms: as long as a challenge is good. */
export const ceremonyTimeout = 300_000
