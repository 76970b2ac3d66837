import { expect, test } from 'vitest'
import { createMetrics } from '../../platform/metrics.ts'
import { userEvent, userUpdated } from '../support/event-factory.ts'
import { eachWithLedger, ledger, receiver } from '../support/fresh-ledger.ts'
import { testRelayConfig } from '../support/relay.ts'

eachWithLedger()

test('what became of attempts and what waits is told, for few hooks by name', async () => {
  receiver.answerWith(({ body }, response) => void response.writeHead(body.data['id'] === 'bad' ? 500 : 204).end())
  const failing = await ledger.hook({ url: receiver.url })
  await ledger.hook({ url: receiver.url, events: ['User.Created'], enabled: false })
  const metrics = createMetrics()
  await ledger.relay({ metrics, config: { ...testRelayConfig, retrySchedule: [5] } })
  await ledger.record(userUpdated('bad'), userUpdated('good'), userEvent('User.Created', 'held'))
  await ledger.untilTrue(`SELECT count(*) = 2 FROM deliveries WHERE state IN ('dead', 'succeeded')`)
  await ledger.untilTrue(`SELECT count(*) = 1 FROM lanes`)
  await ledger.rows(
    `INSERT INTO deliveries (hook_id, event_id, type, entity_kind, entity_id, version, created_at, next_attempt_at)
     SELECT $1, gen_random_uuid(), 'User.Data.Updated', 'user', 'old', 1, now() - interval '1 hour', now() + interval '1 hour'`,
    failing.id,
  )
  await ledger.rows(
    `INSERT INTO lanes (hook_id, entity_kind, entity_id, ready_at) VALUES ($1, 'user', 'old', now() + interval '1 hour')`,
    failing.id,
  )
  const { text } = await metrics.render()
  expect(text).toContain('surrogate_webhook_attempts_total{result="succeeded"} 1')
  expect(text).toContain('surrogate_webhook_attempts_total{result="retrying"} 1')
  expect(text).toContain('surrogate_webhook_attempts_total{result="dead"} 1')
  expect(text).toContain('surrogate_webhook_delivery_lag_seconds_count 1')
  expect(text).toContain('surrogate_webhook_held 1')
  expect(text).toContain('surrogate_webhook_dead 1')
  expect(text).toContain('surrogate_webhook_disabled_hooks 1')
  expect(text).toContain('surrogate_webhook_open_breakers 0')
  const [, age] =
    new RegExp(`oldest_undelivered_seconds\\{hook="${failing.id}",breaker="closed"\\} ([\\d.]+)`).exec(text) ?? []
  expect(Number(age)).toBeGreaterThanOrEqual(3_600)
})

test('hooks beyond the twenty that wait longest are not named', async () => {
  for (let index = 0; index < 25; index += 1) await ledger.hook({ url: receiver.url })
  receiver.answerWith((_received, response) => void response.writeHead(500).end())
  const metrics = createMetrics()
  await ledger.relay({ metrics, config: { ...testRelayConfig, retrySchedule: [3_600_000] } })
  await ledger.record(userUpdated('u1'))
  await ledger.untilTrue(`SELECT count(*) = 25 FROM deliveries WHERE state = 'retrying'`)
  const { text } = await metrics.render()
  expect(text.match(/oldest_undelivered_seconds\{/g)).toHaveLength(20)
})
