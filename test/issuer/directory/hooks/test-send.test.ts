import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { catalogue } from '../../../../events/catalogue.ts'
import { createTestSend } from '../../../../issuer/directory/hooks/test-send.ts'
import { eachWithHooks, hooks, receiver } from '../../../support/fresh-hooks.ts'
import { startWebhookReceiver } from '../../../support/webhook-receiver.ts'

eachWithHooks()

test('a test of every event type arrives, signed as real ones are, and says that it is one', async () => {
  const hook = await hooks.create({ url: receiver.url, events: catalogue.map(({ type }) => type) })
  await hooks.relay()
  await hooks.call(204, 'POST', `/hooks/${hook.id}/test`)
  const types = receiver.received.map(({ raw, headers, body }) => {
    const event = new Webhook(hook.webhookSecret).verify(raw.toString(), headers as Record<string, string>)
    expect(event).toMatchObject({ hookId: hook.id, id: headers['webhook-id'], test: true, version: 1 })
    return body.event
  })
  expect(types.toSorted()).toEqual(catalogue.map(({ type }) => type).toSorted())
  // It is no news: nobody else hears of it, and it counts nothing.
  expect(await hooks.sql('SELECT * FROM outbox')).toEqual([])
  expect(await hooks.sql('SELECT * FROM lanes')).toEqual([])
  const [listed] = await hooks.call(200, 'GET', `/hooks/${hook.id}/deliveries?page_size=1`)
  expect(listed).toMatchObject({ test: true, state: 'succeeded', attempts: 1, lastStatus: 204 })
})

test('another endpoint and other events can be tried before they are saved, with their own headers', async () => {
  const elsewhere = await startWebhookReceiver()
  try {
    const hook = await hooks.create({
      url: receiver.url,
      config: { url: receiver.url, headers: { 'x-key': 'stored' } },
    })
    await hooks.relay()
    const config = { url: elsewhere.url, headers: { 'x-key': 'tried' } }
    await hooks.call(204, 'POST', `/hooks/${hook.id}/test`, { events: ['Role.*', 'User.Deleted'], config })
    expect(elsewhere.received.map(({ body }) => body.event).toSorted()).toEqual(['Role.Created', 'User.Deleted'])
    expect(elsewhere.received[0]!.headers['x-key']).toBe('tried')
    expect(receiver.received).toEqual([])
    expect(await hooks.call(200, 'GET', `/hooks/${hook.id}`)).toMatchObject({ config: { url: receiver.url } })
    expect(hooks.issuer.logged()).not.toContain('tried')
  } finally {
    await elsewhere.close()
  }
})

test('a disabled hook can be tried', async () => {
  const hook = await hooks.create({ url: receiver.url, enabled: false })
  await hooks.relay()
  await hooks.call(204, 'POST', `/hooks/${hook.id}/test`)
  expect(receiver.received).toHaveLength(1)
})

describe('what goes wrong is told at once, and not tried again', () => {
  test('an endpoint that answers with an error', async () => {
    const hook = await hooks.create({ url: receiver.url })
    receiver.answerWith((_received, response) => void response.writeHead(503).end('not today'))
    await hooks.relay()
    expect(await hooks.call(422, 'POST', `/hooks/${hook.id}/test`)).toMatchObject({
      code: 'hook.endpoint_responded_with_error',
      data: { responseStatus: 503, responseBody: 'not today' },
    })
    const [delivery] = await hooks.call(200, 'GET', `/hooks/${hook.id}/deliveries`)
    expect(delivery).toMatchObject({ state: 'dead', attempts: 1, test: true, nextAttemptAt: null })
    expect(await hooks.call(200, 'GET', `/hooks/${hook.id}`)).toMatchObject({ enabled: true })
    // A dead test is nobody's loss: no redrive sends it.
    expect(await hooks.call(201, 'POST', `/hooks/${hook.id}/dead-letters/redrive`)).toMatchObject({ total: 0 })
    expect(receiver.received).toHaveLength(1)
  })

  test('an endpoint that nobody listens at', async () => {
    const gone = await startWebhookReceiver()
    await gone.close()
    const hook = await hooks.create({ url: gone.url })
    await hooks.relay()
    expect(await hooks.call(422, 'POST', `/hooks/${hook.id}/test`)).toMatchObject({
      code: 'hook.send_test_payload_failed',
      details: 'The connection was refused.',
    })
  })

  test('a target that is not allowed, and a hook that does not exist', async () => {
    const hook = await hooks.create({ url: receiver.url })
    await hooks.relay()
    const config = { url: 'http://10.0.0.1/' }
    expect((await hooks.call(422, 'POST', `/hooks/${hook.id}/test`, { config })).code).toBe('hook.target_not_allowed')
    expect((await hooks.call(404, 'POST', '/hooks/missing/test')).code).toBe('entity.not_exists_with_id')
    expect(await hooks.sql('SELECT * FROM deliveries')).toEqual([])
  })
})

test('without a relay nothing is left behind', async () => {
  const hook = await hooks.create({ url: receiver.url })
  expect((await hooks.call(503, 'POST', `/hooks/${hook.id}/test`)).code).toBe('hook.relay_unavailable')
  const relay = await hooks.relay()
  await relay.close()
  expect((await hooks.call(503, 'POST', `/hooks/${hook.id}/test`)).code).toBe('hook.relay_unavailable')
  expect(await hooks.sql('SELECT * FROM deliveries')).toEqual([])
})

test('a relay that is said to be alive but takes nothing: the test is given up, and nobody sends it later', async () => {
  const hook = await hooks.create({ url: receiver.url })
  // Said to be alive, and does nothing.
  await hooks.sql(`INSERT INTO relays (id, alive_until) VALUES (gen_random_uuid(), now() + interval '1 hour')`)
  const { database } = hooks.issuer
  const send = createTestSend({
    database,
    envelope: undefined as never,
    targets: undefined as never,
    baseUrl: 'http://issuer.test',
    waitMs: 100,
    hooks: { get: async () => ({ ...hook, events: ['User.Created'] }) } as never,
    mutate: (_context, work) => database.knex.transaction((trx) => work({ trx, record: async () => {}, note() {} })),
  })
  await expect(send({} as never, hook.id, {})).rejects.toMatchObject({ code: 'hook.relay_unavailable' })
  expect(await hooks.states(hook.id)).toEqual(['cancelled'])
  expect(await hooks.sql('SELECT * FROM lanes')).toEqual([])
})

test('a test-send does not wait until its relay looks again', async () => {
  const hook = await hooks.create({ url: receiver.url })
  await hooks.relay()
  for (let count = 0; count < 8; count += 1) await hooks.call(204, 'POST', `/hooks/${hook.id}/test`)
  const [{ soon } = { soon: 0 }] = await hooks.sql<{ soon: number }>(
    `SELECT count(*)::int AS soon FROM deliveries JOIN delivery_attempts AS attempt ON attempt.delivery_id = deliveries.id
     WHERE attempt.at < deliveries.created_at + interval '400 ms'`,
  )
  // A relay looks once a second by itself: of eight, three would be that early.
  expect(soon).toBeGreaterThanOrEqual(7)
})
