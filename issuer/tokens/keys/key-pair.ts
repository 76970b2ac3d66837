import { createPrivateKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import type { Envelope } from '../../../platform/envelope.ts'
import { sha256 } from '../../../platform/secret.ts'
import { StartupError } from '../../../platform/startup-error.ts'
import { type SigningAlgorithmName, signingAlgorithms } from './signing-algorithms.ts'

/** A key pair as it is stored: the public part in clear, the private part sealed to its `kid`. */
export interface SealedKeyPair {
  /** RFC 7638 thumbprint. */
  kid: string
  algorithm: SigningAlgorithmName
  publicJwk: JsonWebKey
  privateJwk: Buffer
}

export const signingKeyContext = (kid: string) => `signing-key:${kid}`

export const newKeyPair = async (algorithm: SigningAlgorithmName, envelope: Envelope): Promise<SealedKeyPair> =>
  sealKeyPair(algorithm, await signingAlgorithms[algorithm].generate(), envelope)

export const sealKeyPair = (
  algorithm: SigningAlgorithmName,
  { publicKey, privateKey }: { publicKey: KeyObject; privateKey: KeyObject },
  envelope: Envelope,
): SealedKeyPair => {
  const { thumbprintMembers } = signingAlgorithms[algorithm]
  const publicJwk = publicKey.export({ format: 'jwk' })
  const kid = sha256(JSON.stringify(publicJwk, thumbprintMembers as unknown as string[])).toString('base64url')
  const privateJwk = envelope.seal(JSON.stringify(privateKey.export({ format: 'jwk' })), signingKeyContext(kid))
  return { kid, algorithm, publicJwk: { ...publicJwk, kid, alg: algorithm, use: 'sig' }, privateJwk }
}

/** @throws StartupError when it was sealed for another `kid`, or under a key-encryption key that is not configured. */
export const privateKeyOf = (
  { kid, privateJwk }: Pick<SealedKeyPair, 'kid' | 'privateJwk'>,
  envelope: Envelope,
): KeyObject => {
  try {
    return createPrivateKey({
      key: JSON.parse(envelope.open(privateJwk, signingKeyContext(kid)).toString()),
      format: 'jwk',
    })
  } catch (cause) {
    throw new StartupError(`The signing key ${kid} cannot be opened: it is under another key-encryption key.`, {
      hint: 'Set KEY_ENCRYPTION_KEY, and KEY_ENCRYPTION_KEY_PREVIOUS while it is being replaced, to those of all issuers.',
      cause,
    })
  }
}
