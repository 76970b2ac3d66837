import { hash } from 'node:crypto'

/** A `signingKey` as shown to the customer, made ready: HMAC-SHA-256 under its UTF-8 bytes. */
export interface SigningKey {
  /** Of `text`, which is ASCII, and the bytes that follow it. */
  sign(text: string, bytes: Buffer, encoding: 'base64' | 'hex'): string
}

/** Newest first. */
export type SigningKeys = readonly [SigningKey, ...SigningKey[]]

const blockBytes = 64
const digestBytes = 32

const padded = (key: Buffer, pad: number): Buffer => {
  const block = Buffer.alloc(blockBytes + digestBytes, pad)
  key.forEach((byte, index) => {
    block[index] = byte ^ pad
  })
  return block
}

/**
 * RFC 2104 §2, by two digests of whole buffers: `createHmac` makes a stream and two native objects for each signature,
 * which takes longer than the digests themselves.
 */
export const createSigningKey = (text: string): SigningKey => {
  const bytes = Buffer.from(text)
  const key = bytes.length > blockBytes ? hash('sha256', bytes, 'buffer') : bytes
  const inner = padded(key, 0x36).subarray(0, blockBytes)
  const outer = padded(key, 0x5c)
  return {
    sign(text, bytes, encoding) {
      const message = Buffer.allocUnsafe(blockBytes + text.length + bytes.length)
      inner.copy(message)
      message.write(text, blockBytes, 'latin1')
      bytes.copy(message, blockBytes + text.length)
      outer.write(hash('sha256', message, 'binary'), blockBytes, 'binary')
      return hash('sha256', outer, encoding)
    },
  }
}

export interface Signed {
  /** The event's id: the same on every retry and replay. */
  id: string
  /** Whole seconds; of this attempt. */
  timestamp: number
  body: Buffer
  keys: SigningKeys
}

/**
 * The headers that prove where a delivery comes from: Standard Webhooks v1 (one signature for each live key, so that
 * receivers may change keys at their own pace), and the hex HMAC of the bare body that existing receivers check (newest
 * key only).
 */
export const signatureHeaders = ({ id, timestamp, body, keys }: Signed): Record<string, string> => ({
  'webhook-id': id,
  'webhook-timestamp': String(timestamp),
  'webhook-signature': keys.map((key) => `v1,${key.sign(`${id}.${timestamp}.`, body, 'base64')}`).join(' '),
  'logto-signature-sha-256': keys[0].sign('', body, 'hex'),
})
