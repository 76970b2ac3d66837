import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'

/**
 * The refresh token that took another's place, encrypted so that only who holds the other can read it: AES-256-GCM
 * under HKDF-SHA-256 of that token. Layout: nonce (12) · tag (16) · ciphertext.
 */

// A cipher under plain bytes takes longer.
const keyFor = (predecessor: string): KeyObject =>
  createSecretKey(new Uint8Array(hkdfSync('sha256', predecessor, '', 'surrogate refresh token successor', 32)))

export const sealSuccessor = (successor: string, predecessor: string): Buffer => {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', keyFor(predecessor), nonce)
  const ciphertext = Buffer.concat([cipher.update(successor), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), ciphertext])
}

/** Throws when the bytes were sealed for another or changed. */
export const openSuccessor = (sealed: Buffer, predecessor: string): string => {
  const decipher = createDecipheriv('aes-256-gcm', keyFor(predecessor), sealed.subarray(0, 12))
  decipher.setAuthTag(sealed.subarray(12, 28))
  return Buffer.concat([decipher.update(sealed.subarray(28)), decipher.final()]).toString()
}
