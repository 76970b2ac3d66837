import { createCipheriv, createDecipheriv, createSecretKey, randomBytes } from 'node:crypto'
import { sha256 } from './secret.ts'

/**
 * Encryption at rest: AES-256-GCM under the key-encryption key, with the key's id in front so that two keys can be live
 * while one replaces the other. Layout: version (1 byte) · key id (4) · nonce (12) · tag (16) · ciphertext.
 */
export interface Envelope {
  /**
   * `context` (associated data) binds the ciphertext to its place, e.g. `signing-key:<kid>`; opening needs the same.
   */
  seal(plaintext: string | Uint8Array, context: string): Buffer
  /** Throws when the key is not known, the context differs or a byte was changed. */
  open(sealed: Uint8Array, context: string): Buffer
  /**
   * True when `sealed` is under another key than the current one, so that a rotation can find what is left to
   * re-encrypt.
   */
  isStale(sealed: Uint8Array): boolean
}

const version = 1

/** Keys are 32 bytes. `previous` can only be read. */
export const createEnvelope = (keys: { current: Uint8Array; previous?: Uint8Array | undefined }): Envelope => {
  const readableKey = (key: Uint8Array) => {
    if (key.length !== 32) throw new TypeError('A key-encryption key must be 32 bytes.')
    // A cipher under plain bytes takes longer.
    return { id: sha256(key).subarray(0, 4), key: createSecretKey(key) }
  }
  const current = readableKey(keys.current)
  const readable = keys.previous === undefined ? [current] : [current, readableKey(keys.previous)]

  return {
    seal(plaintext, context) {
      const nonce = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', current.key, nonce).setAAD(Buffer.from(context))
      const ciphertext = Buffer.concat([cipher.update(plaintext), cipher.final()])
      return Buffer.concat([Buffer.of(version), current.id, nonce, cipher.getAuthTag(), ciphertext])
    },
    open(sealed, context) {
      const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength)
      if (bytes.length < 33 || bytes[0] !== version) throw new Error('This is not a sealed value of a known version.')
      const found = readable.find(({ id }) => id.equals(bytes.subarray(1, 5)))
      if (found === undefined) throw new Error('The key-encryption key of this value is not configured.')
      const decipher = createDecipheriv('aes-256-gcm', found.key, bytes.subarray(5, 17)).setAAD(Buffer.from(context))
      decipher.setAuthTag(bytes.subarray(17, 33))
      return Buffer.concat([decipher.update(bytes.subarray(33)), decipher.final()])
    },
    isStale: (sealed) => !current.id.equals(Buffer.from(sealed.slice(1, 5))),
  }
}
