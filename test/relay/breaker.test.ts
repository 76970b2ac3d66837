import { expect, test } from 'vitest'
import { createMetrics } from '../../platform/metrics.ts'
import { userUpdated } from '../support/event-factory.ts'
import { anotherReceiver, eachWithLedger, ledger, receiver } from '../support/fresh-ledger.ts'
import { testRelayConfig } from '../support/relay.ts'

eachWithLedger()

const hour = 3_600_000
const users = (count: number) => Array.from({ length: count }, (_, index) => userUpdated(`u${index}`))
const failWith = (status: number) => receiver.answerWith((_received, response) => void response.writeHead(status).end())
const succeed = () => receiver.answerWith((_received, response) => void response.writeHead(204).end())
const isOpen = `SELECT open_since IS NOT NULL FROM hooks`

test('a receiver that fails gets no more than probes; the rest waits and arrives once a probe succeeds', async () => {
  failWith(500)
  const hook = await ledger.hook({ url: receiver.url })
  // Probes come only when the test says so.
  await ledger.relay({ config: { ...testRelayConfig, retrySchedule: [hour], probeSchedule: [hour] } })
  await ledger.record(...users(60))
  await ledger.untilTrue(isOpen)
  await ledger.untilTrue(`SELECT count(*) = 0 FROM lanes WHERE leased_by IS NOT NULL`)
  const before = receiver.received.length
  expect(before).toBeGreaterThanOrEqual(5)
  // What was under way when it opened, and no more.
  expect(before).toBeLessThan(30)

  const probe = () => ledger.rows(`UPDATE hooks SET probe_at = now() WHERE id = $1`, hook.id)
  await probe()
  await receiver.until((received) => received.length === before + 1)
  await ledger.untilTrue(`SELECT probes > 0 AND probe_at > now() + interval '40 minutes' FROM hooks`)

  // Real POSTs only.
  const [counted] = await ledger.rows(`SELECT sum(attempts)::int AS attempts FROM deliveries`)
  expect(counted).toEqual({ attempts: before + 1 })

  succeed()
  await probe()
  await ledger.untilTrue(`SELECT open_since IS NULL AND failing_since IS NULL FROM hooks`)
  await ledger.untilTrue(`SELECT count(*) = $1 FROM deliveries WHERE state = 'succeeded'`, 60 - (before + 1))
})

test('the breaker is one for all relays', async () => {
  failWith(500)
  await ledger.hook({ url: receiver.url })
  const config = { ...testRelayConfig, retrySchedule: [hour], probeSchedule: [hour] }
  const first = await ledger.relay({ config, ownDatabase: true })
  await ledger.record(...users(20))
  await ledger.untilTrue(isOpen)
  await first.close()
  const before = receiver.received.length
  await ledger.relay({ config, ownDatabase: true })
  const other = await anotherReceiver()
  await ledger.hook({ url: other.url })
  await ledger.record(userUpdated('later'))
  await other.until((received) => received.length === 1)
  expect(receiver.received).toHaveLength(before)
})

test('an open breaker does not hold up other hooks', async () => {
  failWith(503)
  const other = await anotherReceiver()
  await ledger.hook({ url: receiver.url })
  await ledger.hook({ url: other.url })
  await ledger.relay({ config: { ...testRelayConfig, retrySchedule: [hour], probeSchedule: [hour] } })
  await ledger.record(...users(40))
  await other.until((received) => received.length === 40)
  await ledger.untilTrue(`SELECT count(*) = 1 FROM hooks WHERE open_since IS NOT NULL`)
})

test('occasional failures open nothing', async () => {
  let count = 0
  receiver.answerWith((_received, response) => void response.writeHead(++count % 4 === 0 ? 500 : 204).end())
  await ledger.hook({ url: receiver.url })
  const metrics = createMetrics()
  await ledger.relay({ metrics, config: { ...testRelayConfig, retrySchedule: new Array(9).fill(5) } })
  await ledger.record(...users(100))
  await ledger.untilTrue(`SELECT count(*) = 100 FROM deliveries WHERE state = 'succeeded'`)
  expect((await metrics.render()).text).not.toMatch(/hook_changes_total\{change="breaker_opened"\} [1-9]/)
})

test('a hook that has failed for five days is disabled; what it misses is held, and comes in order when it is enabled', async () => {
  failWith(500)
  const hook = await ledger.hook({ url: receiver.url })
  const metrics = createMetrics()
  await ledger.relay({ metrics, config: { ...testRelayConfig, retrySchedule: [hour, hour] } })
  await ledger.record(userUpdated('u1'))
  await ledger.untilTrue(`SELECT failing_since IS NOT NULL FROM hooks`)
  await ledger.rows(`UPDATE hooks SET failing_since = now() - interval '5 days'`)
  await ledger.rows(`UPDATE deliveries SET next_attempt_at = now()`)
  await ledger.rows(`UPDATE lanes SET ready_at = now()`)
  await ledger.untilTrue(`SELECT NOT enabled AND disabled_at IS NOT NULL FROM hooks`)
  expect(await ledger.rows(`SELECT disabled_reason FROM hooks`)).toEqual([
    { disabled_reason: 'Nothing could be delivered for five days.' },
  ])
  expect((await metrics.render()).text).toMatch(/surrogate_webhook_hook_changes_total\{change="disabled"\} 1/)

  succeed()
  await ledger.record(userUpdated('u1'), userUpdated('u2'), userUpdated('u1'))
  await ledger.untilTrue(`SELECT count(*) = 4 FROM deliveries WHERE state IN ('pending', 'retrying')`)
  const before = receiver.received.length
  await ledger.rows(`UPDATE deliveries SET next_attempt_at = now()`)
  await ledger.rows(`UPDATE lanes SET ready_at = now()`)
  await ledger.rows(`UPDATE hooks SET enabled = true WHERE id = $1`, hook.id)
  await ledger.untilTrue(`SELECT count(*) = 4 FROM deliveries WHERE state = 'succeeded'`)
  const order = receiver.received.slice(before).map(({ body }) => `${body.data['id']} ${body.version}`)
  expect(order.filter((text) => text.startsWith('u1'))).toEqual(['u1 1', 'u1 2', 'u1 3'])
  expect(await ledger.rows(`SELECT failing_since, failures FROM hooks`)).toEqual([{ failing_since: null, failures: 0 }])
})

test('a single success within the five days is enough', async () => {
  failWith(500)
  await ledger.hook({ url: receiver.url })
  await ledger.relay({ config: { ...testRelayConfig, retrySchedule: [hour] } })
  await ledger.record(userUpdated('u1'))
  await ledger.untilTrue(`SELECT failing_since IS NOT NULL FROM hooks`)
  await ledger.rows(`UPDATE hooks SET failing_since = now() - interval '6 days'`)
  succeed()
  await ledger.record(userUpdated('u2'))
  await ledger.untilTrue(`SELECT failing_since IS NULL FROM hooks`)
  failWith(500)
  await ledger.record(userUpdated('u3'))
  await ledger.untilTrue(`SELECT failing_since > now() - interval '1 minute' AND enabled FROM hooks`)
})
