import { createHmac } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { newSigningKey, webhookSecretOf } from '../../deliveries/hook-secrets.ts'
import { catalogue, eventTypes } from '../../events/catalogue.ts'
import { payloadSchema } from '../../events/documents.ts'
import { testPayload } from '../../events/examples.ts'
import {
  verifyWebhook,
  WebhookBodyError,
  WebhookHeaderError,
  WebhookSignatureError,
  WebhookTimestampError,
  WebhookVerificationError,
} from '../../events/webhooks.ts'
import { uuidv7 } from '../../platform/ids.ts'
import { bodyOf } from '../../relay/deliver.ts'
import { createSigningKey, signatureHeaders } from '../../relay/signature.ts'

/** What receivers do with `surrogate/webhooks`, held against the published library of Standard Webhooks. */

const now = new Date()
const seconds = Math.floor(now.getTime() / 1_000)

/** As the relay sends it, signed with these keys. */
const sent = (
  [newest, ...older]: readonly [string, ...string[]],
  { type = 'User.Created', timestamp = seconds } = {},
) => {
  const id = uuidv7()
  const payload = testPayload(type, { id, correlationId: uuidv7(), createdAt: now })
  const body = bodyOf('q3v000000000000000000', payload.toString())
  const keys = [createSigningKey(newest), ...older.map(createSigningKey)] as const
  return { id, body, headers: signatureHeaders({ id, timestamp, body, keys }) }
}
const key = newSigningKey()
const secret = webhookSecretOf(key)

describe('every event type', () => {
  test.each(catalogue.map(({ type }) => type))('%s: is verified by the published library and by ours', (type) => {
    const { id, body, headers } = sent([key], { type })
    expect(new Webhook(secret).verify(body.toString(), headers)).toMatchObject({ id, event: type })
    const event = verifyWebhook(body, headers, secret)
    expect(event).toEqual(JSON.parse(body.toString()))
    expect(event).toMatchObject({ id, event: type, test: true, hookId: 'q3v000000000000000000' })
    // What a test-send shows is what a real event has.
    expect(eventTypes.get(type)!.data.safeParse(event.data), type).toMatchObject({ success: true })
    const known = Object.keys(payloadSchema(eventTypes.get(type)!)['properties'] as object)
    expect(known).toEqual(expect.arrayContaining(['hookId', 'id', 'event', 'version', 'data']))
  })
})

test.for([0, 1, 38, 63, 64, 65, 200])(
  'signatures are those of Node’s own HMAC, also with a key of %i bytes',
  (length) => {
    const text = 'Zoë 😀'.repeat(40).slice(0, length)
    for (const one of ['x'.repeat(length), text]) {
      const body = bodyOf('q3v000000000000000000', '{"text":"Zoë 😀"}')
      expect(body.toString()).toBe('{"hookId":"q3v000000000000000000","text":"Zoë 😀"}')
      const signed = signatureHeaders({ id: 'x', timestamp: seconds, body, keys: [createSigningKey(one)] })
      const hmac = () => createHmac('sha256', one)
      expect(signed['webhook-signature']).toBe(`v1,${hmac().update(`x.${seconds}.`).update(body).digest('base64')}`)
      expect(signed['logto-signature-sha-256']).toBe(hmac().update(body).digest('hex'))
    }
  },
)

test('what the published library signs is taken, by header records in any case and by Headers', () => {
  const body = '{"id":"x","text":"Zoë 😀"}'
  const signature = new Webhook(secret).sign('msg_1', now, body)
  const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': String(seconds), 'webhook-signature': signature }
  const upper = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]))
  for (const form of [headers, upper, new Headers(headers)]) {
    expect(verifyWebhook(body, form, secret)).toEqual({ id: 'x', text: 'Zoë 😀' })
    expect(verifyWebhook(Buffer.from(body), form, secret)).toEqual({ id: 'x', text: 'Zoë 😀' })
  }
})

test('while a key is replaced, the old secret, the new one and both together verify; a third does not', () => {
  const [older, newer, other] = [newSigningKey(), newSigningKey(), newSigningKey()].map(webhookSecretOf) as [
    string,
    string,
    string,
  ]
  const keyOf = (one: string) => Buffer.from(one.slice(6), 'base64').toString()
  const { body, headers } = sent([keyOf(newer), keyOf(older)])
  expect(headers['webhook-signature']!.split(' ')).toHaveLength(2)
  for (const secrets of [older, newer, [newer, older], [other, older]])
    expect(verifyWebhook(body, headers, secrets).event).toBe('User.Created')
  expect(() => verifyWebhook(body, headers, other)).toThrow(WebhookSignatureError)
})

test('signatures of other kinds beside ours are passed over, whatever stands first', () => {
  const { body, headers } = sent([key])
  const own = headers['webhook-signature']!
  for (const value of [`v1a,${'A'.repeat(88)} ${own}`, `${own} v1a,AAAA v2,x`, `  ${own}`])
    expect(verifyWebhook(body, { ...headers, 'webhook-signature': value }, secret).event).toBe('User.Created')
})

test('five minutes to either side are tolerated, no more; the tolerance is the caller’s', () => {
  const at = (offset: number, options = {}) => {
    const { body, headers } = sent([key], { timestamp: seconds + offset })
    return () => verifyWebhook(body, headers, secret, { now: new Date(seconds * 1_000), ...options })
  }
  for (const offset of [-300, -299, 0, 299, 300]) expect(at(offset)().event).toBe('User.Created')
  for (const offset of [-301, 301]) expect(at(offset)).toThrow(WebhookTimestampError)
  expect(at(-301, { toleranceSeconds: 400 })().event).toBe('User.Created')
  expect(at(-2, { toleranceSeconds: 1 })).toThrow(WebhookTimestampError)
  expect(at(0, { toleranceSeconds: Number.NaN })).toThrow(WebhookTimestampError)
})

type Message = ReturnType<typeof sent>
const forgeries: [string, (message: Message) => Partial<Message>, typeof WebhookVerificationError][] = [
  ['another body', ({ body }) => ({ body: Buffer.concat([body, Buffer.from(' ')]) }), WebhookSignatureError],
  ['another id', ({ headers }) => ({ headers: { ...headers, 'webhook-id': uuidv7() } }), WebhookSignatureError],
  [
    'another time',
    ({ headers }) => ({ headers: { ...headers, 'webhook-timestamp': String(seconds + 1) } }),
    WebhookSignatureError,
  ],
  ['a signature of another kind', ({ headers }) => signature(headers, 'v1a,AAAA'), WebhookSignatureError],
  ['an empty signature', ({ headers }) => signature(headers, 'v1,'), WebhookSignatureError],
  [
    'a cut signature',
    ({ headers }) => signature(headers, headers['webhook-signature']!.slice(0, -8)),
    WebhookSignatureError,
  ],
  [
    'the hex of the legacy header',
    ({ headers }) => signature(headers, `v1,${headers['logto-signature-sha-256']}`),
    WebhookSignatureError,
  ],
  ['no id', ({ headers: { 'webhook-id': _, ...headers } }) => ({ headers }), WebhookHeaderError],
  ['no signature', ({ headers: { 'webhook-signature': _, ...headers } }) => ({ headers }), WebhookHeaderError],
  ['no time', ({ headers: { 'webhook-timestamp': _, ...headers } }) => ({ headers }), WebhookHeaderError],
  [
    'a time with letters behind',
    ({ headers }) => ({ headers: { ...headers, 'webhook-timestamp': `${seconds}abc` } }),
    WebhookHeaderError,
  ],
  [
    'a time in another spelling',
    ({ headers }) => ({ headers: { ...headers, 'webhook-timestamp': `${seconds}.0` } }),
    WebhookHeaderError,
  ],
  ['a header twice', ({ headers }) => ({ headers: { ...headers, 'Webhook-Id': 'x' } }), WebhookHeaderError],
]
const signature = (headers: Record<string, string>, value: string) => ({
  headers: { ...headers, 'webhook-signature': value },
})

test.each(forgeries)('%s is refused', (_name, forge, expected) => {
  const message = sent([key])
  const { body, headers } = { ...message, ...forge(message) }
  expect(() => verifyWebhook(body, headers, secret)).toThrow(expected)
  expect(() => verifyWebhook(body, headers, secret)).toThrow(WebhookVerificationError)
})

test('a signed body that is no JSON object is refused as such', () => {
  for (const text of ['', 'x', '[]', 'null', '"{}"']) {
    const body = Buffer.from(text)
    const headers = signatureHeaders({ id: 'x', timestamp: seconds, body, keys: [createSigningKey(key)] })
    expect(() => verifyWebhook(body, headers, secret)).toThrow(WebhookBodyError)
  }
})

test('secrets that would let anybody in are a mistake of the program, not of the message', () => {
  const { body, headers } = sent([''])
  for (const unusable of [[], '', 'whsec_', 'whsec_AAAA', `${secret}!`, key])
    expect(() => verifyWebhook(body, headers, unusable)).toThrow(TypeError)
})
