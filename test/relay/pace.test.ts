import { expect, test } from 'vitest'
import { statement } from '../../platform/database/database.ts'
import { loadRelayConfig } from '../../relay/config.ts'
import { claimGatedLanes, msUntilGatedDue } from '../../relay/ledger/lane-claim-store.ts'
import { userEvent, userUpdated } from '../support/event-factory.ts'
import { anotherReceiver, eachWithLedger, ledger, receiver } from '../support/fresh-ledger.ts'
import { testRelayConfig } from '../support/relay.ts'
import { slowAnswer } from '../support/webhook-receiver.ts'

eachWithLedger()

const users = (count: number) => Array.from({ length: count }, (_, index) => userUpdated(`u${index}`))

test('a rate limit holds over all relays, and is used up to a second’s worth at once', async () => {
  const hook = await ledger.hook({ url: receiver.url })
  // 60 a minute: one a second, and nothing saved up beyond one.
  await ledger.rows(`UPDATE hooks SET rate_limit = 60 WHERE id = $1`, hook.id)
  await ledger.relay({ ownDatabase: true })
  await ledger.relay({ ownDatabase: true })
  const started = Date.now()
  await ledger.record(...users(10))
  await receiver.until((received) => received.length >= 3)
  // At once, after a second, after two: later is possible, earlier is not.
  expect(receiver.received[2]!.at - started).toBeGreaterThan(1_990)
  await ledger.untilTrue(`SELECT slots_from > now() - interval '1100 ms' FROM hooks`)
  await ledger.rows(`UPDATE hooks SET rate_limit = NULL`)
  await receiver.until((received) => received.length === 10)
})

test('a hook gets as many POSTs at a time as the operator says', async () => {
  // So that they would pile up.
  const slow = slowAnswer(5)
  receiver.answerWith(slow.answer)
  await ledger.hook({ url: receiver.url })
  const environment = { WEBHOOK_CONCURRENCY: '3', WEBHOOK_ALLOW_HTTP: 'true', WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8' }
  await ledger.relay({ config: loadRelayConfig(environment) })
  for (const count of [60, 120]) {
    await ledger.record(...users(60))
    await receiver.until((received) => received.length === count)
  }
  expect(slow.most).toBe(3)
})

test('a limit set while a lane is worked off holds at once: what was claimed before is given back', async () => {
  const hook = await ledger.hook({ url: receiver.url })
  receiver.answerWith(async (_received, response) => {
    // One POST a minute; the answer waits for that.
    if (receiver.received.length === 5) await ledger.rows(`UPDATE hooks SET rate_limit = 1 WHERE id = $1`, hook.id)
    response.writeHead(204).end()
  })
  await ledger.record(...Array.from({ length: 400 }, () => userUpdated('u1')))
  await ledger.relay({ config: { ...testRelayConfig, freshMs: 0 } })
  await ledger.untilTrue(`SELECT slots_from IS NOT NULL FROM hooks`)
  await ledger.untilTrue(`SELECT count(*) = 1 FROM lanes WHERE leased_by IS NULL`)
  // The one slot that a limit begins with.
  expect(receiver.received).toHaveLength(6)
})

test('a limited hook holds nobody up, and its lanes stay in order', async () => {
  const other = await anotherReceiver()
  const hook = await ledger.hook({ url: receiver.url })
  await ledger.hook({ url: other.url })
  await ledger.rows(`UPDATE hooks SET rate_limit = 1200 WHERE id = $1`, hook.id)
  await ledger.relay()
  for (let round = 0; round < 5; round += 1) await ledger.record(userUpdated('a'), userUpdated('b'), userUpdated('c'))
  await other.until((received) => received.length === 15)
  await receiver.until((received) => received.length === 15)
  for (const id of ['a', 'b', 'c']) {
    const versions = receiver.received.filter(({ body }) => body.data['id'] === id).map(({ body }) => body.version)
    expect(versions).toEqual([1, 2, 3, 4, 5])
  }
})

test('what was held is caught up at a measured pace, then the hook is as any other', async () => {
  const hook = await ledger.hook({ url: receiver.url, enabled: false })
  await ledger.relay({ config: { ...testRelayConfig, catchUpRate: 1_200 } })
  await ledger.record(...users(40))
  await ledger.untilTrue(`SELECT count(*) = 40 FROM lanes`)
  const started = Date.now()
  await ledger.rows(`UPDATE hooks SET enabled = true WHERE id = $1`, hook.id)
  await receiver.until((received) => received.length === 40)
  // 20 at once, the other 20 in the second after; not earlier.
  expect(receiver.received.at(-1)!.at - started).toBeGreaterThan(990)
  await ledger.untilTrue(`SELECT NOT catching_up AND NOT gated FROM hooks`)
})

test('hooks take turns: with more of them than one claim looks at, and lanes for few, none starves', async () => {
  for (let index = 0; index < 130; index += 1) await ledger.hook({ url: receiver.url })
  await ledger.record(userUpdated('a'), userUpdated('b'))
  await ledger.relay({ config: { ...testRelayConfig, maxLanes: 8 } })
  await receiver.until((received) => received.length === 260)
  const hooks = new Set(receiver.received.map(({ body }) => body.hookId))
  expect(hooks.size).toBe(130)
})

test('receivers that hang hold half of the lanes at most, however many they are', async () => {
  const hung = await anotherReceiver(() => {})
  for (let index = 0; index < 20; index += 1) await ledger.hook({ url: hung.url })
  await ledger.relay({
    config: { ...testRelayConfig, maxLanes: 32, attemptTimeoutMs: 300, leaseMs: 10_000, retrySchedule: [1] },
  })
  await ledger.record(...users(10))
  await hung.until((received) => received.length >= 40)
  await ledger.hook({ url: receiver.url })
  for (let round = 0; round < 5; round += 1) await ledger.record(...users(10))
  await receiver.until((received) => received.length === 50)
})

test('two hooks at one host do not wait for each other', async () => {
  const slow: (() => void)[] = []
  receiver.answerWith(({ url }, response) => {
    if (url === '/webhooks') slow.push(() => response.writeHead(204).end())
    else response.writeHead(204).end()
  })
  await ledger.hook({ url: receiver.url })
  await ledger.hook({ url: receiver.url.replace('/webhooks', '/other') })
  await ledger.relay()
  await ledger.record(...users(20))
  await receiver.until((received) => received.filter(({ url }) => url === '/other').length === 20)
  expect(receiver.received.filter(({ url }) => url === '/webhooks')).toHaveLength(4)
  receiver.answerWith((_received, response) => void response.writeHead(204).end())
  for (const answer of slow) answer()
  await receiver.until((received) => received.length === 40)
})

test('a backlog for one receiver does not hold up the events behind it that are for another', async () => {
  const other = await anotherReceiver()
  await ledger.hook({ url: receiver.url })
  await ledger.hook({ url: other.url, events: ['User.Created'] })
  receiver.answerWith(slowAnswer(20).answer)
  await ledger.rows(`
    WITH event AS (
      INSERT INTO outbox (id, entity_kind, entity_id, version, type, correlation_id, payload)
      SELECT gen_random_uuid(), 'user', 'u' || n, 1, 'User.Data.Updated', gen_random_uuid(),
        convert_to('{"id":"' || n || '","event":"x","version":1,"data":{"id":"u' || n || '"}}', 'UTF8')
      FROM generate_series(1, 4000) n RETURNING seq)
    INSERT INTO outbox_pending (seq) SELECT seq FROM event`)
  await ledger.record(userEvent('User.Created', 'behind'))
  await ledger.relay()
  await other.until((received) => received.some(({ body }) => body.data['id'] === 'behind'))
  expect(receiver.received.length).toBeLessThan(2_000)
})

test('large payloads are read a few at a time, whatever their number', async () => {
  await ledger.hook({ url: receiver.url })
  const fill = 'x'.repeat(200_000)
  for (let index = 0; index < 30; index += 1) await ledger.record(userUpdated(`u${index % 10}`, { fill }))
  await ledger.relay({ config: { ...testRelayConfig, maxBytes: 500_000 } })
  await receiver.until((received) => received.length === 30)
  for (let index = 0; index < 10; index += 1) {
    const own = receiver.received.filter(({ body }) => body.data['id'] === `u${index}`)
    expect(own.map(({ body }) => body.version)).toEqual([1, 2, 3])
    expect(own[0]!.raw.length).toBeGreaterThan(200_000)
  }
})

test('when a limited hook is next due is known, whatever else is overdue', async () => {
  const { id } = await ledger.hook({ url: receiver.url })
  await ledger.rows(`UPDATE hooks SET rate_limit = 60, slots_from = now() + interval '1 hour'`)
  await ledger.hook({ url: receiver.url })
  const breaker = await ledger.hook({ url: receiver.url })
  await ledger.rows(
    `UPDATE hooks SET open_since = now(), probe_at = now() - interval '1 min' WHERE id = $1`,
    breaker.id,
  )
  // Of each hook, for longer than it was looked for.
  await ledger.rows(`
    INSERT INTO lanes (hook_id, entity_kind, entity_id, ready_at) SELECT id, 'user', 'u1', now() - interval '1 min' FROM hooks`)
  const due = () => msUntilGatedDue(ledger.database.query, { catchUpRate: 3_000, sinceMs: 10 })
  const ms = await due()
  expect(ms).toBeGreaterThan(3_500_000)
  expect(ms).toBeLessThanOrEqual(3_601_000)
  await ledger.rows(`DELETE FROM lanes WHERE hook_id = $1`, id)
  expect(await due()).toBeUndefined()
})

/**
 * A hook with a limit of one POST a second and one whose breaker is open, with so many lanes that are due, and a relay
 * that claims them.
 */
const gatedHooks = async (lanes: number) => {
  const limited = await ledger.hook({ url: receiver.url })
  const broken = await ledger.hook({ url: receiver.url })
  const relayId = '00000000-0000-4000-8000-000000000000'
  await ledger.rows(`INSERT INTO relays (id, alive_until) VALUES ($1, now() + interval '1 hour')`, relayId)
  await ledger.rows(
    `INSERT INTO lanes (hook_id, entity_kind, entity_id, ready_at)
     SELECT id, 'user', 'u' || n, now() FROM hooks CROSS JOIN generate_series(1, $1::int) AS n`,
    lanes,
  )
  const options = { relayId, leaseMs: 30_000, perHook: 4, room: new Map(), catchUpRate: 3_000 }
  return {
    both: [limited.id, broken.id].toSorted(),
    /** A slot of the one and a probe of the other. */
    async refill() {
      await ledger.rows(`UPDATE lanes SET leased_by = NULL, ready_at = now()`)
      await ledger.rows(`UPDATE hooks SET rate_limit = 60, slots_from = NULL WHERE id = $1`, limited.id)
      await ledger.rows(`UPDATE hooks SET open_since = now(), probe_at = now() WHERE id = $1`, broken.id)
    },
    claim: async () => (await claimGatedLanes(ledger.database.query, options)).map(({ hookId }) => hookId),
  }
}

test('relays that look at the same moment spend a slot or a probe once', async () => {
  const { both, refill, claim } = await gatedHooks(50)
  for (let round = 0; round < 40; round += 1) {
    await refill()
    const claimed = await Promise.all(Array.from({ length: 8 }, claim))
    expect(claimed.flat().toSorted()).toEqual(both)
  }
})

test('a slot or a probe is spent only where a lane was claimed for it', async () => {
  const { both, refill, claim } = await gatedHooks(1)
  await refill()
  const lock = statement('test-lock-lanes', 'SELECT FROM lanes FOR UPDATE')
  // Somebody is just changing the lanes: they are passed over.
  await ledger.database.transaction(async (query) => {
    await query(lock, [])
    expect(await claim()).toEqual([])
  })
  expect((await claim()).toSorted()).toEqual(both)
})
