import { expect, test } from 'vitest'
import { eachWithHooks, hooks, receiver } from '../../../support/fresh-hooks.ts'

eachWithHooks()

interface Lane {
  entity: { kind: string; id: string }
  head: { deliveryId: string; version: number; attempts: number }
  behind: number
}

const lanesOf = async (id: string, query = ''): Promise<Lane[]> =>
  hooks.call(200, 'GET', `/hooks/${id}/lanes?page=1${query}`)
const healthOf = (id: string) => hooks.call(200, 'GET', `/hooks/${id}/health`)

test('a lane shows what holds it up, and how much waits behind that', async () => {
  const hook = await hooks.create({ url: receiver.url })
  receiver.answerWith(({ body }, response) => void response.writeHead(body.data['id'] === 'bad' ? 503 : 204).end())
  await hooks.relay({ retrySchedule: [3_600_000] })
  await hooks.record('bad', 'good', 'bad', 'bad')
  await expect.poll(async () => (await lanesOf(hook.id)).map(({ head }) => head.attempts)).toEqual([1])

  const [delivery] = await hooks.call(200, 'GET', `/hooks/${hook.id}/deliveries?state=retrying`)
  expect(await lanesOf(hook.id)).toEqual([
    {
      entity: { kind: 'user', id: 'bad' },
      head: {
        deliveryId: delivery.id,
        event: 'User.Data.Updated',
        version: 1,
        attempts: 1,
        lastStatus: 503,
        lastError: 'The receiver answered 503.',
        isSending: false,
        since: delivery.createdAt,
        nextAttemptAt: delivery.nextAttemptAt,
      },
      behind: 2,
    },
  ])
})

test('lanes are read in pages, the longest waiting first', async () => {
  // Nobody sends.
  const hook = await hooks.create({ url: receiver.url })
  await hooks.relay({ retrySchedule: [3_600_000] })
  receiver.answerWith((_received, response) => void response.writeHead(500).end())
  for (const entity of ['a', 'b', 'c']) {
    await hooks.record(entity)
    await expect.poll(async () => (await lanesOf(hook.id)).map(({ entity: { id } }) => id)).toContain(entity)
  }
  await expect.poll(async () => (await lanesOf(hook.id)).map(({ head }) => head.attempts)).toEqual([1, 1, 1])
  const all = (await lanesOf(hook.id)).map(({ entity }) => entity.id)
  expect(all.toSorted()).toEqual(['a', 'b', 'c'])
  const { rows } = await hooks.issuer.database.pool.query('SELECT entity_id FROM lanes ORDER BY ready_at, entity_id')
  expect(all).toEqual(rows.map(({ entity_id }) => entity_id))
  for (const [index, entity] of all.entries()) {
    const page = await hooks.issuer.api('GET', `/hooks/${hook.id}/lanes?page=${index + 1}&page_size=1`)
    expect(page.headers.get('total-number')).toBe('3')
    expect(page.body.map((one: Lane) => one.entity.id)).toEqual([entity])
  }
  expect(await lanesOf((await hooks.create({ url: receiver.url })).id)).toEqual([])
  expect((await hooks.issuer.api('GET', '/hooks/none/lanes')).status).toBe(404)
})

test('health says since when deliveries succeed, fail, are held up by the breaker, or are off', async () => {
  const hook = await hooks.create({ url: receiver.url })
  const idle = {
    state: 'idle',
    since: null,
    failures: 0,
    failingSince: null,
    circuit: { isOpen: false, since: null, nextProbeAt: null },
    pausedUntil: null,
    isCatchingUp: false,
    disabledReason: null,
    lastSuccessAt: null,
    lastFailureAt: null,
  }
  expect(await healthOf(hook.id)).toEqual(idle)

  await hooks.relay({ retrySchedule: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1] })
  await hooks.record('a')
  await expect.poll(async () => (await healthOf(hook.id)).state).toBe('succeeding')
  const [{ at: firstSuccess }] = (
    await hooks.issuer.database.pool.query('SELECT at FROM delivery_attempts ORDER BY at LIMIT 1')
  ).rows
  expect(await healthOf(hook.id)).toEqual({
    ...idle,
    state: 'succeeding',
    since: +firstSuccess,
    lastSuccessAt: +firstSuccess,
  })

  receiver.answerWith((_received, response) => void response.writeHead(500).end())
  await hooks.record('b')
  await expect.poll(async () => (await healthOf(hook.id)).state).toBe('open')
  const open = await healthOf(hook.id)
  expect(open).toMatchObject({
    circuit: { isOpen: true, since: open.since, nextProbeAt: expect.any(Number) },
    lastSuccessAt: +firstSuccess,
  })
  expect(open.failures).toBeGreaterThanOrEqual(10)
  expect(open.failingSince).toBeLessThanOrEqual(open.since)
  expect(open.circuit.nextProbeAt).toBeGreaterThan(open.since)

  receiver.answerWith((_received, response) => void response.writeHead(204).end())
  // Whoever changes the URL wants it tried again.
  await hooks.call(200, 'PATCH', `/hooks/${hook.id}`, { config: { url: `${receiver.url}?again` } })
  await expect.poll(async () => (await healthOf(hook.id)).state).toBe('succeeding')
  const again = await healthOf(hook.id)
  expect(again).toMatchObject({ failures: 0, failingSince: null, circuit: idle.circuit })
  // Not since the first success, but since the last failure.
  expect(again.since).toBeGreaterThan(again.lastFailureAt)

  await hooks.call(200, 'PATCH', `/hooks/${hook.id}`, { enabled: false })
  expect(await healthOf(hook.id)).toMatchObject({ state: 'disabled', lastSuccessAt: again.lastSuccessAt })
  expect((await hooks.issuer.api('GET', '/hooks/none/health')).status).toBe(404)
})
