import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { webhookSecretOf } from '../../../../events/hook-secrets.ts'
import { verifyWebhook } from '../../../../events/webhooks.ts'
import { eachWithHooks, hooks, receiver } from '../../../support/fresh-hooks.ts'
import { fillDisk } from '../../../support/full-disk.ts'
import type { Received } from '../../../support/webhook-receiver.ts'

eachWithHooks()

/** What is set through the API, and what relays then do. */

test('a replaced key signs along, two old ones at most, until it is told otherwise', async () => {
  await hooks.relay()
  const hook = await hooks.create({ url: receiver.url })
  const keys = [hook.signingKey]
  const replace = async (body?: unknown) => {
    const { signingKey } = await hooks.call(200, 'PATCH', `/hooks/${hook.id}/signing-key`, body)
    keys.unshift(signingKey)
  }
  const verifying = async () => {
    const before = receiver.received.length
    await hooks.record('u1')
    await receiver.until((received) => received.length > before)
    const { raw, headers } = receiver.received.at(-1)!
    return keys.filter((key) => {
      try {
        new Webhook(webhookSecretOf(key)).verify(raw.toString(), headers as Record<string, string>)
        return true
      } catch {
        return false
      }
    })
  }
  await replace()
  expect(await verifying()).toEqual(keys)
  await replace({ overlapSeconds: 60 })
  await replace({ overlapSeconds: 60 })
  expect(new Set(keys).size).toBe(4)
  expect(await verifying()).toEqual(keys.slice(0, 3))
  await replace({ overlapSeconds: 0 })
  expect(await verifying()).toEqual(keys.slice(0, 1))
  await hooks.call(400, 'PATCH', `/hooks/${hook.id}/signing-key`, { overlapSeconds: 604_801 })
})

test('a mutation through the API arrives signed, and its delivery and attempt can be read', async () => {
  await hooks.relay()
  const hook = await hooks.create({ url: receiver.url, events: ['User.Created'] })
  const user = await hooks.call(200, 'POST', '/users', { username: 'ada' })
  await receiver.until((received) => received.length === 1)
  const arrived = receiver.received[0]!
  expect(arrived.body).toMatchObject({ hookId: hook.id, event: 'User.Created', version: 1, data: user, path: '/users' })

  await hooks.settled(hook.id)
  expect(await hooks.call(200, 'GET', `/hooks/${hook.id}/recent-logs`)).toEqual([
    {
      tenantId: 'default',
      id: expect.any(String),
      key: 'TriggerHook.User.Created',
      payload: {
        key: 'TriggerHook.User.Created',
        result: 'Success',
        hookId: hook.id,
        hookRequest: { body: arrived.body },
        response: { statusCode: 204, body: '' },
      },
      createdAt: expect.any(Number),
    },
  ])
  const deliveries = await hooks.issuer.api('GET', `/hooks/${hook.id}/deliveries?page=1&page_size=10`)
  expect(deliveries.headers.get('total-number')).toBe('1')
  expect(deliveries.body).toEqual([
    {
      id: expect.stringMatching(/^\d+$/),
      hookId: hook.id,
      eventId: arrived.headers['webhook-id'],
      event: 'User.Created',
      entity: { kind: 'user', id: user.id },
      version: 1,
      state: 'succeeded',
      attempts: 1,
      nextAttemptAt: null,
      createdAt: expect.any(Number),
      lastStatus: 204,
      lastError: null,
      test: false,
    },
  ])
  expect(await hooks.call(200, 'GET', '/hooks?includeExecutionStats=true')).toEqual([
    { ...hook, executionStats: { successCount: 1, requestCount: 1 } },
  ])
})

test('a hook that was registered by the older member `event` gets that event, and after a change the other', async () => {
  await hooks.relay()
  const byEvent = { url: receiver.url, events: undefined, event: 'User.Created' }
  const hook = await hooks.create(byEvent)
  await hooks.call(200, 'POST', '/users', { name: 'Ada' })
  await receiver.until((received) => received.length === 1)
  await hooks.call(200, 'PATCH', `/hooks/${hook.id}`, { event: 'Role.Created' })
  await hooks.call(200, 'POST', '/users', { name: 'Grace' })
  await hooks.call(200, 'POST', '/roles', { name: 'Reader', description: 'Reads' })
  await receiver.until((received) => received.length === 2)
  await hooks.ingested()
  expect(receiver.received.map(({ body }) => body.event)).toEqual(['User.Created', 'Role.Created'])
  // A test-send without a word of events is of that one.
  await hooks.call(204, 'POST', `/hooks/${hook.id}/test`)
  expect(receiver.received.at(-1)!.body).toMatchObject({ event: 'Role.Created', test: true })
})

test('a disabled hook’s events are held and delivered once it is enabled; a deleted one’s are cancelled', async () => {
  await hooks.relay()
  const hook = await hooks.create({ url: receiver.url, enabled: false })
  await hooks.record('held')
  await hooks.ingested()
  expect(await hooks.states(hook.id)).toEqual(['held'])
  expect(receiver.received).toEqual([])
  await hooks.call(200, 'PATCH', `/hooks/${hook.id}`, { enabled: true })
  await receiver.until((received) => received.length === 1)
  await hooks.settled(hook.id)
  expect(await hooks.states(hook.id)).toEqual(['succeeded'])

  await hooks.call(200, 'PATCH', `/hooks/${hook.id}`, { enabled: false })
  await hooks.record('held')
  await hooks.ingested()
  expect(await hooks.states(hook.id)).toEqual(['held', 'succeeded'])
  await hooks.call(204, 'DELETE', `/hooks/${hook.id}`)
  expect(await hooks.sql('SELECT state FROM deliveries ORDER BY id')).toEqual([
    { state: 'succeeded' },
    { state: 'cancelled' },
  ])
  expect(await hooks.sql('SELECT * FROM lanes')).toEqual([])
})

test('what a user may have is delivered whole; what is too large is refused where it arises, and tells nothing', async () => {
  await hooks.relay()
  const hook = await hooks.create({ url: receiver.url })
  const { id } = await hooks.call(200, 'POST', '/users', { username: 'ada' })
  const path = `/users/${id}/custom-data`
  // 256 kB as JSON.
  const largest = { fill: 'x'.repeat(262_144 - '{"fill":""}'.length) }
  await hooks.call(422, 'PATCH', path, { customData: { fill: `${largest.fill}x` } })
  await hooks.call(413, 'PATCH', path, { customData: { fill: 'x'.repeat(1_048_576) } })
  await hooks.call(200, 'PATCH', path, { customData: largest })
  await receiver.until((received) => received.length === 1)
  await hooks.settled(hook.id)
  const [{ raw, headers }] = receiver.received as [Received]
  const { event, data } = verifyWebhook(raw, headers, hook.webhookSecret)
  expect(event).toBe('User.Data.Updated')
  // Not compared by `expect`, which would print both.
  expect(JSON.stringify(data) === JSON.stringify(largest)).toBe(true)
  expect(receiver.received).toHaveLength(1)
})

test('while the disk of the database is full, changes are refused and leave nothing; with room they go on without a gap', async () => {
  await hooks.relay()
  const hook = await hooks.create({ url: receiver.url })
  const user = await hooks.call(200, 'POST', '/users', { username: 'ada', name: 'before' })
  const path = `/users/${user.id}`
  const disk = await fillDisk(hooks.issuer.database.pool, 'outbox')
  const refused = await hooks.issuer.api('PATCH', path, { name: 'lost' })
  expect(refused).toMatchObject({ status: 503, body: { code: 'server.unavailable' } })
  expect(refused.headers.get('retry-after')).toBe('5')
  expect(await hooks.call(200, 'GET', path)).toEqual(user)
  expect(await disk.refusals()).toBe(1)

  await disk.free()
  await hooks.call(200, 'PATCH', path, { name: 'after' })
  await receiver.until((received) => received.length === 1)
  await hooks.settled(hook.id)
  expect(receiver.received.map(({ body }) => [body.version, body.data['name']])).toEqual([[2, 'after']])
})
