import { expect, test } from 'vitest'
import { webhookSecretOf } from '../../deliveries/hook-secrets.ts'
import { insertTestSend } from '../../deliveries/test-send-store.ts'
import { createPostgresBus } from '../../events/postgres-bus.ts'
import { verifyWebhook } from '../../events/webhooks.ts'
import { createDatabase } from '../../platform/database/database.ts'
import { uuidv7 } from '../../platform/ids.ts'
import { silentLogger } from '../../platform/logger.ts'
import { capturedLogger } from '../support/captured-logger.ts'
import { startCountingProxy } from '../support/counting-proxy.ts'
import { userUpdated } from '../support/event-factory.ts'
import { eachWithLedger, ledger, receiver } from '../support/fresh-ledger.ts'
import { testRelayConfig } from '../support/relay.ts'
import type { WebhookReceiver } from '../support/webhook-receiver.ts'

eachWithLedger()

/** What surrounds a relay fails: its database, its clock. */

test('while its database is away a relay tries again ever more rarely, says so in a few lines, and goes on', async () => {
  const { logger, lines } = capturedLogger()
  const proxy = await startCountingProxy(ledger.connection)
  const database = createDatabase({ connection: proxy.connection, logger })
  const bus = createPostgresBus({ database, logger })
  const relay = await ledger.relay({ database, bus, logger })
  let again: Awaited<ReturnType<typeof startCountingProxy>> | undefined
  try {
    await ledger.hook({ url: receiver.url })
    await ledger.record(userUpdated('u1'))
    await receiver.until((received) => received.length === 1)
    await ledger.untilSettled()
    const before = lines.length
    await proxy.close()
    await ledger.record(userUpdated('u1'), userUpdated('u2'))
    // Each part has tried several times by the time that the slowest says that it has waited for two seconds.
    const said = (text: string) => lines.slice(before).filter(({ msg }) => String(msg).includes(text)).length
    await expect
      .poll(() => said('lanes could not be claimed'), { timeout: 20_000, interval: 20 })
      .toBeGreaterThanOrEqual(5)
    // Doubling from 100 ms, a part says it five times in 3 s; at 10 ms apart it would be 300 times.
    const outage = lines.slice(before)
    expect(outage.length).toBeLessThan(80)
    const text = JSON.stringify(outage)
    expect(text).not.toContain(proxy.connection.password)
    again = await startCountingProxy(ledger.connection, { port: proxy.connection.port })
    await receiver.until((received) => received.length === 3)
    expect(receiver.received.map(({ body }) => `${body.data['id']} ${body.version}`).toSorted()).toEqual([
      'u1 1',
      'u1 2',
      'u2 1',
    ])
  } finally {
    await relay.close()
    await bus.close()
    await database.close()
    await again?.close()
  }
}, 40_000)

/** A relay whose connections to the database a test can break. */
const relayBehindProxy = async () => {
  const proxy = await startCountingProxy(ledger.connection)
  const database = createDatabase({ connection: proxy.connection, logger: silentLogger })
  const bus = createPostgresBus({ database, logger: silentLogger })
  return {
    proxy,
    async start() {
      // Leases are longer than a test may last.
      const relay = await ledger.relay({ database, bus, config: { ...testRelayConfig, leaseMs: 120_000 } })
      return relay.close
    },
    async close() {
      await bus.close()
      await database.close()
      await proxy.close()
    },
  }
}

/** One delivery that waits for a relay. */
const waiting = {
  async 'of a hook'() {
    await ledger.hook({ url: receiver.url })
    await ledger.rows(`UPDATE hooks SET paused_until = now() + interval '1 hour'`)
    const first = await ledger.relay()
    await ledger.record(userUpdated('u1'))
    await ledger.untilTrue(`SELECT count(*) = 1 FROM lanes`)
    await first.close()
    await ledger.rows(`UPDATE hooks SET paused_until = NULL`)
  },
  async 'of a hook with a rate limit'() {
    await waiting['of a hook']()
    await ledger.rows(`UPDATE hooks SET rate_limit = 60`)
  },
  async 'that is a test'() {
    const { id: hookId } = await ledger.hook({ url: receiver.url })
    const eventId = uuidv7()
    const payload = Buffer.from(`{"id":"${eventId}","test":true}`)
    await ledger.database.transaction((query) =>
      insertTestSend(query, { hookId, eventId, type: 'User.Created', payload, target: undefined }),
    )
  },
}

test.each([
  ['of a hook', 'lanes-claim'],
  ['of a hook with a rate limit', 'lanes-claim-gated'],
  ['that is a test', 'lanes-claim-tests'],
] as const)(
  'a delivery %s whose claim is answered into the void is claimed again, and does not wait for its lease to end',
  async (delivery, claim) => {
    await waiting[delivery]()
    const { proxy, start, close } = await relayBehindProxy()
    const claimed = proxy.loseAnswer(claim)
    const stop = await start()
    try {
      await claimed
      await ledger.untilTrue(`SELECT count(*) = 1 FROM deliveries WHERE state = 'succeeded' AND attempts = 1`)
      await ledger.untilSettled()
      expect(receiver.received).toHaveLength(1)
    } finally {
      await stop()
      await close()
    }
  },
)

test('a relay that stops frees also the lanes that it has without knowing it', async () => {
  await waiting['of a hook']()
  const { proxy, start, close } = await relayBehindProxy()
  const claimed = proxy.loseAnswer('lanes-claim')
  const stop = await start()
  await claimed
  await stop()
  await close()
  expect(await ledger.rows(`SELECT leased_by FROM lanes`)).toEqual([{ leased_by: null }])
  await ledger.relay()
  await receiver.until((received) => received.length === 1)
})

test('what a relay cannot send for want of sockets of its own counts against nobody, and is left to another', async () => {
  const { logger, lines } = capturedLogger()
  const { id } = await ledger.hook({ url: `http://receiver.test:${receiver.port}/` })
  const outOfSockets = async () => {
    throw Object.assign(new Error('too many open files'), { code: 'EMFILE' })
  }
  await ledger.relay({ logger, resolve: outOfSockets })
  await ledger.record(userUpdated('u1'))
  await expect
    .poll(() => lines, { timeout: 10_000 })
    .toContainEqual(expect.objectContaining({ hookId: id, reason: 'The relay could not open a connection (EMFILE).' }))
  await ledger.untilTrue(`SELECT count(*) = 1 FROM lanes WHERE leased_by IS NULL`)
  expect(await ledger.rows('SELECT state, attempts FROM deliveries')).toEqual([{ state: 'pending', attempts: 0 }])
  expect(await ledger.rows('SELECT failures, failing_since FROM hooks')).toEqual([{ failures: 0, failing_since: null }])

  await ledger.relay({ resolve: async () => [{ address: '127.0.0.1', family: 4 }] })
  await ledger.untilTrue(`SELECT state = 'succeeded' AND attempts = 1 FROM deliveries`)
  expect(receiver.received).toHaveLength(1)
})

test.each([
  ['behind', -3_600_000],
  ['ahead', 3_600_000],
])(
  'a relay whose clock is an hour %s delivers and retries in time; only its signatures show it',
  async (_name, offset) => {
    const { id, signingKey } = await ledger.hook({ url: receiver.url })
    const now = () => new Date(Date.now() + offset)
    receiver.answerWith((_received, response) => {
      response.writeHead(receiver.received.length === 1 ? 500 : 204).end()
    })
    await ledger.relay({ now, config: { ...testRelayConfig, retrySchedule: [50] } })
    await ledger.record(userUpdated('u1'), userUpdated('u1'))
    await ledger.untilTrue(`SELECT count(*) = 2 FROM deliveries WHERE state = 'succeeded'`)
    expect(receiver.received.map(({ body }) => body.version)).toEqual([1, 1, 2])
    // Retries, leases and lanes go by the clock of the database.
    await ledger.untilSettled()
    const [{ raw, headers }] = receiver.received as [WebhookReceiver['received'][number]]
    const secret = webhookSecretOf(signingKey)
    expect(() => verifyWebhook(raw, headers, secret)).toThrow(/seconds from now/)
    expect(verifyWebhook(raw, headers, secret, { now: now() })).toMatchObject({ hookId: id })
  },
)

test('a delay that a receiver names as a date is measured by the clock that the relay has', async () => {
  const now = () => new Date(Date.now() + 3_600_000)
  const until = new Date(Math.floor(now().getTime() / 1_000) * 1_000 + 600_000).toUTCString()
  receiver.answerWith((_received, response) => void response.writeHead(429, { 'retry-after': until }).end())
  await ledger.hook({ url: receiver.url })
  await ledger.relay({ now })
  await ledger.record(userUpdated('u1'))
  await ledger.untilTrue(
    `SELECT paused_until BETWEEN now() + interval '9 min' AND now() + interval '10 min' FROM hooks`,
  )
})
