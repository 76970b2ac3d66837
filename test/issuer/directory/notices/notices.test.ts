import { afterEach, beforeEach, expect, test } from 'vitest'
import { createEventFeed } from '../../../../issuer/directory/events/feed.ts'
import { createNotices } from '../../../../issuer/directory/notices/notices.ts'
import { createTestDatabase } from '../../../support/database.ts'
import { type EventStream, openEventStream } from '../../../support/event-stream.ts'
import { type HookTest, startHookTest } from '../../../support/hooks.ts'
import { startTestIssuer } from '../../../support/issuer.ts'
import { startWebhookReceiver } from '../../../support/webhook-receiver.ts'

let hooks: HookTest
let streams: EventStream[]
beforeEach(async () => {
  hooks = await startHookTest({ instances: 2 })
  streams = []
})
afterEach(async () => {
  for (const stream of streams) stream.close()
  await hooks.close()
})

const open = async (
  headers: Record<string, string> = {},
  { instance = 0, token }: { instance?: number; token?: string } = {},
) => {
  const { issuer } = hooks
  const bearer = token ?? (await issuer.managementToken())
  const stream = await openEventStream(`${issuer.urls[instance]}/api/notices`, {
    authorization: `Bearer ${bearer}`,
    ...headers,
  })
  streams.push(stream)
  return stream
}
const isReady = ({ event }: { event: string }) => event === 'ready'
const about = (entityId: string) => (event: { data: { entity?: { id: string } } }) => event.data.entity?.id === entityId

test('changes are told as they happen, by every issuer, without what they say', async () => {
  const [here, there] = [await open(), await open({}, { instance: 1 })]
  expect(here.headers['content-type']).toBe('text/event-stream; charset=utf-8')
  expect(here.headers['cache-control']).toBe('no-store')
  await Promise.all([here.until(isReady), there.until(isReady)])
  const { id } = await hooks.call(200, 'POST', '/roles', { name: 'Reader', description: 'secret plans' })
  for (const stream of [here, there]) {
    const notice = await stream.until(about(id))
    expect(notice).toEqual({
      id: expect.stringMatching(/^\d+$/),
      event: 'change',
      data: {
        id: expect.any(String),
        type: 'Role.Created',
        entity: { kind: 'role', id },
        version: 1,
        organizationId: null,
        correlationId: expect.any(String),
        createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
      },
    })
    expect(JSON.stringify(stream.events)).not.toContain('secret plans')
  }
})

test('who lost the connection goes on where it was, and misses nothing', async () => {
  const first = await open()
  const ready = await first.until(isReady)
  const { id: one } = await hooks.call(200, 'POST', '/roles', { name: 'One', description: 'x' })
  const seen = await first.until(about(one))
  first.close()
  const { id: two } = await hooks.call(200, 'POST', '/roles', { name: 'Two', description: 'x' })
  const { id: three } = await hooks.call(200, 'POST', '/roles', { name: 'Three', description: 'x' })

  const again = await open({ 'last-event-id': seen.id! }, { instance: 1 })
  await again.until(about(three))
  const told = again.events.filter(({ event }) => event === 'change').map(({ data }) => data.entity.id)
  expect(told).toEqual([two, three])

  const fromStart = await open({ 'last-event-id': ready.id! })
  await fromStart.until(about(three))
  expect(fromStart.events.filter(({ event }) => event === 'change').map(({ data }) => data.entity.id)).toEqual([
    one,
    two,
    three,
  ])
  for (const malformed of ['x', '-1', '1.5']) expect((await open({ 'last-event-id': malformed })).status).toBe(400)
})

test('who was away for too long is told that there is a gap, and goes on from now', async () => {
  const ahead = await open({ 'last-event-id': '999999999' })
  const gap = await ahead.until(({ event }) => event === 'gap')
  expect(gap.id).toMatch(/^\d+$/)
  const { id } = await hooks.call(200, 'POST', '/roles', { name: 'Later', description: 'x' })
  expect(await ahead.until(about(id))).toMatchObject({ event: 'change' })
})

test('sessions and outcomes of deliveries are told apart from changes', async () => {
  const receiver = await startWebhookReceiver()
  const hook = await hooks.create({ url: receiver.url })
  await hooks.relay()
  const stream = await open({}, { instance: 1 })
  await stream.until(isReady)
  const { id: userId } = await hooks.call(200, 'POST', '/users', { username: 'ada' })
  const app = await hooks.issuer.createApplication()
  const resource = await hooks.issuer.createResource({ scopes: ['read:orders'] })
  await hooks.issuer.exchange(app, await hooks.issuer.subjectToken(userId), { resource, scope: 'read:orders' })
  expect(await stream.until(({ event }) => event === 'session')).toMatchObject({
    data: { type: 'Impersonation.Started', entity: { kind: 'impersonation' } },
  })

  await hooks.record('bob', 'bob')
  const counted = () =>
    stream.events.filter(({ event }) => event === 'delivery').reduce((sum, { data }) => sum + data.succeeded, 0)
  await expect.poll(counted).toBe(2)
  expect(await stream.until(({ event }) => event === 'delivery')).toEqual({
    id: undefined,
    event: 'delivery',
    data: { hookId: hook.id, succeeded: expect.any(Number), failed: 0 },
  })
  receiver.answerWith((_received, response) => void response.writeHead(500).end())
  await hooks.record('eve')
  expect(await stream.until(({ data }) => data.failed === 1)).toMatchObject({ data: { hookId: hook.id } })
  await receiver.close()
})

test('only holders of read or all may listen, and HEAD does not', async () => {
  const { issuer } = hooks
  const machine = await issuer.createMachine(`${issuer.baseUrl}/api`, ['users'])
  const token = await issuer.clientToken(machine, `${issuer.baseUrl}/api`, 'users')
  expect((await open({}, { token })).status).toBe(403)
  const headers = { authorization: `Bearer ${await issuer.managementToken()}` }
  const head = await fetch(`${issuer.urls[0]}/api/notices`, { method: 'HEAD', headers })
  expect(head.status).toBe(200)
})

test('a stream ends when the client may no longer listen', async () => {
  const { issuer } = hooks
  const machine = await issuer.createMachine(`${issuer.baseUrl}/api`, ['read'])
  const token = await issuer.clientToken(machine, `${issuer.baseUrl}/api`, 'read')
  const stream = await open({}, { token })
  await stream.until(isReady)
  await issuer.sql('DELETE FROM application_roles WHERE application_id = $1', [machine.id])
  expect(await stream.until(({ event }) => event === 'end')).toMatchObject({ data: { reason: 'token' } })
  await stream.ended
})

test('an issuer that stops ends its streams', async () => {
  const issuer = await startTestIssuer()
  const stream = await openEventStream(`${issuer.url}/api/notices`, {
    authorization: `Bearer ${await issuer.managementToken()}`,
  })
  await stream.until(isReady)
  await issuer.close()
  await stream.ended
})

const hearOutcomes = () => ({ connected: true, onNotify: () => () => {}, close: async () => {} })

/** Without HTTP: what depends on time is an argument. */
const startNotices = async (options: Partial<Parameters<typeof createNotices>[0]> = {}) => {
  const test = await createTestDatabase()
  const feed = createEventFeed(test.database)
  const notices = createNotices({ feed, hearOutcomes, lookMs: 5, ...options })
  const close = async () => {
    await notices.close()
    feed.close()
    await test.close()
  }
  return { notices, close }
}
const request = (subject: string, stillAllowed = async () => true) => ({ after: undefined, subject, stillAllowed })

test('a stream ends when its token no longer counts', async () => {
  const { notices, close } = await startNotices({ recheckMs: 5 })
  let isGood = true
  const stream = notices.open(request('ada', async () => isGood))(new AbortController().signal)
  expect(await stream.next()).toMatchObject({ value: { event: 'ready' } })
  isGood = false
  expect(await stream.next()).toMatchObject({ value: { event: 'end', data: { reason: 'token' } } })
  expect(await stream.next()).toMatchObject({ done: true })
  await close()
})

test('a stream that has nothing to tell shows that it is alive', async () => {
  const { notices, close } = await startNotices({ heartbeatMs: 5 })
  const stream = notices.open(request('ada'))(new AbortController().signal)
  await stream.next()
  expect(await stream.next()).toEqual({ done: false, value: undefined })
  expect(await stream.next()).toEqual({ done: false, value: undefined })
  await close()
  expect(await stream.next()).toMatchObject({ done: true })
})

test('so many listen and no more, of one caller and of all, until somebody leaves', async () => {
  const { notices, close } = await startNotices({ most: 3, mostOfSubject: 2 })
  const leave = new AbortController()
  const ada = notices.open(request('ada'))(leave.signal)
  await ada.next()
  await notices.open(request('ada'))(leave.signal).next()
  expect(() => notices.open(request('ada'))).toThrow(expect.objectContaining({ status: 503 }))
  await notices.open(request('bob'))(leave.signal).next()
  expect(() => notices.open(request('eve'))).toThrow(expect.objectContaining({ code: 'server.unavailable' }))
  leave.abort()
  expect(await ada.next()).toMatchObject({ done: true })
  const eve = notices.open(request('eve'))(new AbortController().signal)
  expect(await eve.next()).toMatchObject({ value: { event: 'ready' } })
  await close()
})
