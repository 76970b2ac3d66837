import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/** How far the sender's clock may be from ours, in seconds; a recorded delivery cannot be sent again after that. */
const toleranceSeconds = 300

/**
 * A receiver's check as docs/webhooks.md gives it (Standard Webhooks): the signature covers id, timestamp and the bytes
 * as they arrived. `secret` is the hook's `webhookSecret` (`whsec_…`). While a secret rotates the header carries
 * several signatures.
 */
export const verifyWebhook = (secret: string, headers: IncomingHttpHeaders, body: Buffer): boolean => {
  const id = headers['webhook-id']
  const timestamp = headers['webhook-timestamp']
  const signatures = headers['webhook-signature']
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signatures !== 'string') return false
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= toleranceSeconds)) return false
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest()
  return signatures.split(' ').some((signature) => {
    const [version, value = ''] = signature.split(',')
    const given = Buffer.from(value, 'base64')
    return version === 'v1' && given.length === expected.length && timingSafeEqual(given, expected)
  })
}
