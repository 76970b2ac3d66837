import { createHmac } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { webhookSecretOf } from '../../events/hook-secrets.ts'
import { recordEvent } from '../../events/outbox.ts'
import { verifyWebhook, WebhookSignatureError } from '../../events/webhooks.ts'
import { userEvent, userUpdated } from '../support/event-factory.ts'
import { eachWithLedger, ledger, receiver } from '../support/fresh-ledger.ts'

eachWithLedger()

test('a change arrives once, as the stored bytes behind the hook id, signed both ways', async () => {
  const hook = await ledger.hook({ url: `${receiver.url}?tenant=1`, headers: { 'x-team': 'support' } })
  await ledger.relay()
  const [event] = await ledger.record(userUpdated('u1', { name: 'Zoë' }))
  await receiver.until((received) => received.length === 1)
  await ledger.untilSettled()

  const [delivery] = receiver.received
  const [stored] = await ledger.rows<{ payload: Buffer }>('SELECT payload FROM outbox')
  expect(delivery!.raw.toString()).toBe(`{"hookId":"${hook.id}",${stored!.payload.toString().slice(1)}`)
  expect(delivery!.url).toBe('/webhooks?tenant=1')
  // Without a dot, which parts what is signed.
  expect(event!.id).toMatch(/^[0-9a-f-]{36}$/)
  expect(delivery!.headers).toMatchObject({
    'content-type': 'application/json',
    'x-team': 'support',
    'webhook-id': event!.id,
    'logto-signature-sha-256': createHmac('sha256', hook.signingKey).update(delivery!.raw).digest('hex'),
  })
  const verified = new Webhook(webhookSecretOf(hook.signingKey)).verify(
    delivery!.raw.toString(),
    delivery!.headers as Record<string, string>,
  )
  expect(verified).toMatchObject({ hookId: hook.id, event: 'User.Data.Updated', version: 1, data: { name: 'Zoë' } })
  expect(receiver.received).toHaveLength(1)
})

test('what the relay says of itself cannot be said otherwise by a hook', async () => {
  await ledger.hook({ url: receiver.url, headers: { 'User-Agent': 'somebody else', 'Content-Type': 'text/plain' } })
  await ledger.relay()
  await ledger.record(userUpdated('u1'))
  await receiver.until((received) => received.length === 1)
  const [delivery] = receiver.received
  expect(delivery!.headers).toMatchObject({ 'user-agent': 'Surrogate-Webhooks/1', 'content-type': 'application/json' })
})

test('a receiver that echoes what it got leaves no credentials in the log', async () => {
  receiver.answerWith(({ headers }, response) => {
    response.writeHead(500, { 'x-debug': `${headers.authorization} ${headers['x-api-key']}` })
    response.end(
      `<pre>Authorization: ${headers.authorization}\nToken: ${headers.authorization?.slice(7)}\nkey=${headers['x-api-key']}`,
    )
  })
  await ledger.hook({
    url: receiver.url,
    headers: { authorization: 'Bearer abcdefgh12345678', 'x-api-key': 'k-0123456789' },
  })
  await ledger.relay()
  await ledger.record(userUpdated('u1'))
  await ledger.untilTrue(`SELECT count(*) = 1 FROM delivery_attempts`)
  const [attempt] = await ledger.rows<{ response_body: Buffer; response_headers: object }>(
    'SELECT response_body, response_headers FROM delivery_attempts',
  )
  const kept = `${attempt!.response_body.toString()} ${JSON.stringify(attempt!.response_headers)}`
  expect(kept).toContain('<pre>Authorization: [redacted]')
  expect(kept).not.toMatch(/abcdefgh12345678|k-0123456789/)
})

test('the log of an attempt holds what was sent and answered, but no credentials', async () => {
  receiver.answerWith((_received, response) => {
    response.writeHead(200, { 'set-cookie': 'session=secret', location: 'https://me:secret@x.test/a?token=secret' })
    response.end(Buffer.from([0x6f, 0x6b, 0x00, 0xff]))
  })
  const hook = await ledger.hook({ url: receiver.url, headers: { authorization: 'Bearer secret' } })
  await ledger.relay()
  await ledger.record(userUpdated('u1'))
  await ledger.untilTrue(`SELECT count(*) = 1 FROM delivery_attempts`)
  const [attempt] = await ledger.rows('SELECT * FROM delivery_attempts')
  expect(attempt).toMatchObject({
    hook_id: hook.id,
    succeeded: true,
    status: 200,
    error: null,
    address: '127.0.0.1',
    response_body: Buffer.from([0x6f, 0x6b, 0x00, 0xff]),
    response_headers: { 'set-cookie': '[redacted]', location: 'https://x.test/a' },
    request_headers: { authorization: '[redacted]', 'content-type': 'application/json' },
  })
  expect(JSON.stringify(attempt)).not.toContain('secret')
})

test('a change that is rolled back is never told of', async () => {
  await ledger.hook({ url: receiver.url })
  await ledger.relay()
  const refused = ledger.database.transaction(async (query) => {
    await recordEvent(query, userUpdated('ghost'))
    throw new Error('refused')
  })
  await expect(refused).rejects.toThrow('refused')
  await ledger.record(userUpdated('real'))
  await receiver.until((received) => received.length > 0)
  await ledger.untilSettled()
  expect(receiver.received.map(({ body }) => body.data['id'])).toEqual(['real'])
})

test('an event that commits late, behind higher numbers, is not missed', async () => {
  await ledger.hook({ url: receiver.url })
  await ledger.relay()
  let commit = () => {}
  const held = new Promise<void>((resolve) => {
    commit = resolve
  })
  let began = () => {}
  const recorded = new Promise<void>((resolve) => {
    began = resolve
  })
  const late = ledger.database.transaction(async (query) => {
    await recordEvent(query, userUpdated('late'))
    began()
    await held
  })
  await recorded
  await ledger.record(userUpdated('early'))
  await receiver.until((received) => received.length === 1)
  await ledger.untilSettled()
  commit()
  await late
  await receiver.until((received) => received.length === 2)
  expect(receiver.received.map(({ body }) => body.data['id'])).toEqual(['early', 'late'])
})

test('hooks get only what they listen to', async () => {
  const both = await ledger.hook({ url: receiver.url, events: ['User.Data.Updated', 'User.SuspensionStatus.Updated'] })
  const one = await ledger.hook({ url: receiver.url, events: ['User.SuspensionStatus.Updated'] })
  await ledger.relay()
  await ledger.record(userUpdated('u1'), userEvent('User.SuspensionStatus.Updated', 'u1'))
  await receiver.until((received) => received.length === 3)
  await ledger.untilSettled()
  const seen = receiver.received.map(({ body }) => `${body.hookId} ${body.event} ${body.version}`)
  expect(seen.toSorted()).toEqual(
    [
      `${both.id} User.Data.Updated 1`,
      `${both.id} User.SuspensionStatus.Updated 2`,
      `${one.id} User.SuspensionStatus.Updated 2`,
    ].toSorted(),
  )
})

test('while a key is replaced both sign, the newest first; the bare-body signature is the newest key’s', async () => {
  const hook = await ledger.hook({ url: receiver.url, oldKeys: ['a'.repeat(32), 'b'.repeat(32)] })
  await ledger.relay()
  await ledger.record(userUpdated('u1'))
  await receiver.until((received) => received.length === 1)
  const { headers, raw } = receiver.received[0]!
  for (const key of [hook.signingKey, 'a'.repeat(32), 'b'.repeat(32)])
    expect(new Webhook(webhookSecretOf(key)).verify(raw.toString(), headers as Record<string, string>)).toBeTruthy()
  expect(() =>
    new Webhook(webhookSecretOf('c'.repeat(32))).verify(raw.toString(), headers as Record<string, string>),
  ).toThrow()
  const newest = createHmac('sha256', hook.signingKey)
  newest.update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.`).update(raw)
  expect(String(headers['webhook-signature']).split(' ')[0]).toBe(`v1,${newest.digest('base64')}`)
  expect(headers['logto-signature-sha-256']).toBe(createHmac('sha256', hook.signingKey).update(raw).digest('hex'))
})

test('an old key signs no longer than its time', async () => {
  const [ended, ending] = ['a'.repeat(32), 'b'.repeat(32)] as const
  const hook = await ledger.hook({ url: receiver.url, oldKeys: [ending, ended] })
  await ledger.rows(`
    UPDATE hook_signing_keys SET expires_at = now()
    WHERE created_at = (SELECT min(created_at) FROM hook_signing_keys)`)
  await ledger.relay()
  await ledger.record(userUpdated('u1'))
  await receiver.until((received) => received.length === 1)
  const { headers, raw } = receiver.received[0]!
  for (const key of [hook.signingKey, ending])
    expect(verifyWebhook(raw, headers, webhookSecretOf(key)).hookId).toBe(hook.id)
  expect(() => verifyWebhook(raw, headers, webhookSecretOf(ended))).toThrow(WebhookSignatureError)
})

test('connections are kept and used again', async () => {
  await ledger.hook({ url: receiver.url })
  await ledger.relay()
  for (let index = 0; index < 20; index += 1) {
    await ledger.record(userUpdated('u1'))
    await receiver.until((received) => received.length === index + 1)
  }
  expect(receiver.connections).toBe(1)
})
