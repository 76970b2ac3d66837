import { createHmac } from 'node:crypto'

export interface Signed {
  /** The event's id: the same on every retry and replay. */
  id: string
  /** Whole seconds; of this attempt. */
  timestamp: number
  body: Buffer
  /** `signingKey`s as shown to the customer, newest first. At least one. */
  keys: readonly string[]
}

// Of the string's UTF-8 bytes; given as a Buffer, making the key takes five times as long as all the rest.
const hmac = (key: string) => createHmac('sha256', key)

/**
 * The headers that prove where a delivery comes from: Standard Webhooks v1 (one signature for each live key, so that receivers may change
 * keys at their own pace), and the hex HMAC of the bare body that existing receivers check (newest key only).
 */
export const signatureHeaders = ({ id, timestamp, body, keys }: Signed): Record<string, string> => ({
  'webhook-id': id,
  'webhook-timestamp': String(timestamp),
  'webhook-signature': keys
    .map((key) => `v1,${hmac(key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`)
    .join(' '),
  'logto-signature-sha-256': hmac(keys[0]!).update(body).digest('hex'),
})
