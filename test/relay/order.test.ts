import { expect, test } from 'vitest'
import { userUpdated } from '../support/event-factory.ts'
import { anotherReceiver, eachWithLedger, ledger, receiver } from '../support/fresh-ledger.ts'
import { testRelayConfig } from '../support/relay.ts'
import type { Received } from '../support/webhook-receiver.ts'

eachWithLedger()

const quick = { ...testRelayConfig, retrySchedule: new Array(9).fill(20) }

/** Versions by entity, in the order of their first successful arrival. */
const versionsBy = (received: readonly Received[]) => {
  const seen = new Map<string, number[]>()
  for (const { body } of received) {
    const id = String(body.data['id'])
    const versions = seen.get(id) ?? []
    if (!versions.includes(body.version)) versions.push(body.version)
    seen.set(id, versions)
  }
  return seen
}

/** The receiver refuses every tenth delivery. Returns those that it accepts. */
const refuseEveryTenth = () => {
  const accepted: Received[] = []
  let count = 0
  receiver.answerWith((received, response) => {
    count += 1
    const fails = count % 10 === 0
    if (!fails) accepted.push(received)
    response.writeHead(fails ? 500 : 204).end()
  })
  return accepted
}

const entities = Array.from({ length: 100 }, (_, index) => `u${index}`)
const oneToTwenty = Array.from({ length: 20 }, (_, index) => index + 1)

test('2 000 events of 100 entities arrive in order per entity though every tenth attempt fails', async () => {
  await ledger.hook({ url: receiver.url })
  await ledger.relay({ config: quick })
  const accepted = refuseEveryTenth()
  await Promise.all(
    entities.map(async (id) => {
      for (const round of oneToTwenty) await ledger.record(userUpdated(id, { round }))
    }),
  )
  await receiver.until(() => accepted.length === 2_000)
  await ledger.untilSettled()
  expect(accepted).toHaveLength(2_000)
  const versions = versionsBy(accepted)
  expect(versions.size).toBe(100)
  for (const list of versions.values()) expect(list).toEqual(oneToTwenty)
  const [states] = await ledger.rows(`SELECT state, count(*)::int FROM deliveries GROUP BY state`)
  expect(states).toEqual({ state: 'succeeded', count: 2_000 })
})

test('a lane with much to send lets others of its hook have their turn', async () => {
  await ledger.hook({ url: receiver.url })
  const changes = Array.from({ length: 200 }, () => userUpdated('busy'))
  await ledger.record(...changes, userUpdated('quiet'))
  // One lane at a time.
  await ledger.relay({ config: { ...testRelayConfig, perHook: 1 } })
  await receiver.until((received) => received.length === 201)
  const ids = receiver.received.map(({ body }) => body.data['id'])
  expect(ids.indexOf('quiet')).toBeLessThan(150)
  expect(versionsBy(receiver.received).get('busy')).toEqual(changes.map((_, index) => index + 1))
})

test('a lane that fails holds up nobody else', async () => {
  await ledger.hook({ url: receiver.url })
  await ledger.relay({ config: { ...testRelayConfig, retrySchedule: [3_600_000] } })
  receiver.answerWith(({ body }, response) => void response.writeHead(body.data['id'] === 'bad' ? 500 : 204).end())
  await ledger.record(userUpdated('bad'), userUpdated('good'), userUpdated('bad'), userUpdated('good'))
  await receiver.until((received) => received.length === 3)
  await ledger.untilTrue(`SELECT count(*) = 2 FROM deliveries WHERE state = 'succeeded'`)
  expect(receiver.received.map(({ body }) => `${body.data['id']} ${body.version}`).toSorted()).toEqual([
    'bad 1',
    'good 1',
    'good 2',
  ])
  expect(
    await ledger.rows(`SELECT version, state, attempts FROM deliveries WHERE entity_id = 'bad' ORDER BY 1`),
  ).toEqual([
    { version: 1, state: 'retrying', attempts: 1 },
    { version: 2, state: 'pending', attempts: 0 },
  ])
})

test('two relays share the work: nothing twice, everything in order', async () => {
  await ledger.hook({ url: receiver.url })
  await ledger.relay({ ownDatabase: true })
  await ledger.relay({ ownDatabase: true })
  await Promise.all(
    entities.map(async (id) => {
      for (const round of oneToTwenty.slice(0, 10)) await ledger.record(userUpdated(id, { round }))
    }),
  )
  await receiver.until((received) => received.length >= 1_000)
  await ledger.untilSettled()
  expect(receiver.received).toHaveLength(1_000)
  for (const list of versionsBy(receiver.received).values()) expect(list).toEqual(oneToTwenty.slice(0, 10))
  const relays = await ledger.rows(`SELECT count(DISTINCT event_id)::int AS events FROM deliveries WHERE attempts = 1`)
  expect(relays).toEqual([{ events: 1_000 }])
})

test('three relays are replaced one after the other under load: five hooks get all, once, in order, though every tenth attempt fails', {
  timeout: 60_000,
}, async () => {
  for (let hook = 0; hook < 5; hook += 1) await ledger.hook({ url: receiver.url })
  const accepted = refuseEveryTenth()
  const start = () => ledger.relay({ ownDatabase: true, config: quick })
  const relays = await Promise.all([start(), start(), start()])
  const recording = Promise.all(
    entities.slice(0, 20).map(async (id) => {
      for (const round of oneToTwenty) await ledger.record(userUpdated(id, { round }))
    }),
  )
  for (const [index, old] of relays.entries()) {
    await receiver.until((received) => received.length >= (index + 1) * 300)
    await Promise.all([old.close(), start()])
  }
  await recording
  await receiver.until(() => accepted.length >= 2_000)
  await ledger.untilSettled()
  expect(accepted).toHaveLength(2_000)
  const lanes = Map.groupBy(accepted, ({ body }) => `${body.hookId} ${body.data['id']}`)
  expect(lanes.size).toBe(100)
  for (const own of lanes.values()) expect(own.map(({ body }) => body.version)).toEqual(oneToTwenty)
})

test('a backlog from before the relay started is delivered in order', async () => {
  await ledger.hook({ url: receiver.url })
  for (const round of oneToTwenty) await ledger.record(...entities.slice(0, 25).map((id) => userUpdated(id, { round })))
  await ledger.relay()
  await receiver.until((received) => received.length >= 500)
  await ledger.untilSettled()
  expect(receiver.received).toHaveLength(500)
  for (const list of versionsBy(receiver.received).values()) expect(list).toEqual(oneToTwenty)
})

test('a receiver that never answers does not slow down the others', async () => {
  const hung = await anotherReceiver(() => {})
  await ledger.hook({ url: hung.url })
  await ledger.hook({ url: receiver.url })
  await ledger.relay({ config: { ...testRelayConfig, maxLanes: 16, attemptTimeoutMs: 1_000, leaseMs: 10_000 } })
  await ledger.record(...entities.map((id) => userUpdated(id)))
  await receiver.until((received) => received.length === 100)
  expect(hung.received.length).toBeLessThanOrEqual(8)
})
