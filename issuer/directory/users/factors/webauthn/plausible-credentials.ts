import type { Hmac } from '../../../../base/hmac-keys-store.ts'
import type { KnownCredential } from './descriptors.ts'

/** Of credential ids that authenticators make, in bytes. */
const lengths = [16, 20, 32, 32] as const

/**
 * Credentials that nobody has, for an identifier that nobody has: always the same, so that asking again tells nothing.
 * `identifier` is the canonical one.
 */
export const plausibleCredentials = (hmac: Hmac, identifier: string): KnownCredential[] => {
  const choice = hmac('plausible-credentials', identifier, 'choice')[0]!
  const length = lengths[choice % lengths.length]!
  const credentialId = hmac('plausible-credentials', identifier, 'id').subarray(0, length)
  return [{ credentialId, transports: ['hybrid', 'internal'] }]
}
