import { createHmac, timingSafeEqual } from 'node:crypto'

/**
 * For receivers: checks that a webhook was sent by your issuer, that nobody changed it, and that it is not an old one
 * sent again (Standard Webhooks 1.0, symmetric signatures `v1`). Needs nothing but Node.
 */

/** An event as it arrives. Members may be added at any time: ignore what you do not know. */
export interface WebhookEvent {
  hookId: string
  /** The same on every retry and replay: handle each id once. */
  id: string
  /** `User.Created`, … */
  event: string
  /** Counts the events of the entity (this user, this role, …) from 1. */
  version: number
  apiVersion: string
  correlationId: string
  /** ISO 8601. */
  createdAt: string
  organizationId?: string
  /** The session because of which an API made the change. */
  sid?: string
  /** What the Management API answered. */
  data: unknown
  /** Present on a test-send: nothing happened. */
  test?: true
  [member: string]: unknown
}

/** A record (`request.headers` of Node and Express, in any case), or `Headers` of fetch. */
export type WebhookHeaders =
  | Readonly<Record<string, string | readonly string[] | undefined>>
  | { get(name: string): string | null }

export interface VerifyOptions {
  /** How far the clocks may be apart, and how long a message may take, in seconds. Default 300. */
  toleranceSeconds?: number
  /** Default: the current time. */
  now?: Date
}

/** Whatever is wrong with a message: answer 401, and do not act on it. */
export class WebhookVerificationError extends Error {
  override readonly name: string = 'WebhookVerificationError'
}
/** A header is missing or is not what Standard Webhooks says. */
export class WebhookHeaderError extends WebhookVerificationError {
  override readonly name = 'WebhookHeaderError'
}
/** Sent too long ago, or by a clock that is too far ahead. */
export class WebhookTimestampError extends WebhookVerificationError {
  override readonly name = 'WebhookTimestampError'
}
/** None of the signatures was made with one of the secrets over this body. */
export class WebhookSignatureError extends WebhookVerificationError {
  override readonly name = 'WebhookSignatureError'
}
/** Signed, but no JSON object. */
export class WebhookBodyError extends WebhookVerificationError {
  override readonly name = 'WebhookBodyError'
}

/**
 * Verifies a webhook and returns its event. `body`: the bytes as they arrived, before any parser; a string is taken as
 * their UTF-8 text. `secrets`: one or several `whsec_…` (`webhookSecret` of the hook), so that a new one can be added
 * before the old one ends. Throws a `WebhookVerificationError`, or TypeError when the secrets themselves are unusable.
 */
export const verifyWebhook = (
  body: Uint8Array | string,
  headers: WebhookHeaders,
  secrets: string | readonly string[],
  { toleranceSeconds = 300, now = new Date() }: VerifyOptions = {},
): WebhookEvent => {
  const keys = keysOf(secrets)
  const id = required(headers, 'webhook-id')
  const timestamp = required(headers, 'webhook-timestamp')
  const signatures = required(headers, 'webhook-signature')
  // Digits only: `Number` and `parseInt` would take more than one spelling of a number.
  if (!/^\d{1,15}$/.test(timestamp)) throw new WebhookHeaderError('webhook-timestamp is not a number of seconds.')
  // NaN must not pass.
  if (!(Math.abs(now.getTime() / 1_000 - Number(timestamp)) <= toleranceSeconds))
    throw new WebhookTimestampError(`webhook-timestamp is more than ${toleranceSeconds} seconds from now.`)

  const given = signatures
    .split(' ')
    .filter((signature) => signature.startsWith('v1,'))
    .map((signature) => Buffer.from(signature.slice(3), 'base64'))
  const expected = keys.map((key) => createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest())
  const genuine = expected.some((one) =>
    given.some((other) => other.length === one.length && timingSafeEqual(one, other)),
  )
  if (!genuine) throw new WebhookSignatureError('No signature fits: another secret, or a body that was changed.')
  return eventOf(body)
}

const keysOf = (secrets: string | readonly string[]): Buffer[] => {
  const list = typeof secrets === 'string' ? [secrets] : secrets
  if (list.length === 0) throw new TypeError('At least one secret is needed.')
  return list.map((secret) => {
    const text = secret.startsWith('whsec_') ? secret.slice(6) : ''
    const key = Buffer.from(text, 'base64')
    // An empty or mistyped secret would be one that everybody knows.
    if (key.length < 24 || key.toString('base64').replace(/=+$/, '') !== text.replace(/=+$/, ''))
      throw new TypeError('A secret must be the webhookSecret of a hook: whsec_ and base64.')
    return key
  })
}

const required = (headers: WebhookHeaders, name: string): string => {
  const value = valueIn(headers, name)
  if (value === undefined || value === null || value === '') throw new WebhookHeaderError(`${name} is missing.`)
  if (typeof value !== 'string') throw new WebhookHeaderError(`${name} is repeated.`)
  return value
}

const valueIn = (headers: WebhookHeaders, name: string): string | readonly string[] | null | undefined => {
  if (typeof headers.get === 'function') return headers.get(name)
  const record = headers as Readonly<Record<string, string | readonly string[] | undefined>>
  const found = Object.keys(record).filter((key) => key.toLowerCase() === name)
  return found.length > 1 ? found : record[found[0] ?? name]
}

const eventOf = (body: Uint8Array | string): WebhookEvent => {
  const text =
    typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')
  const event: unknown = parse(text)
  if (typeof event !== 'object' || event === null || Array.isArray(event))
    throw new WebhookBodyError('The body is not a JSON object.')
  return event as WebhookEvent
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw new WebhookBodyError('The body is not JSON.')
  }
}
