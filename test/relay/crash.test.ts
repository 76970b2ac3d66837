import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { announceLanes } from '../../deliveries/lane-notice-store.ts'
import { insertTestSend } from '../../deliveries/test-send-store.ts'
import { createEnvelope } from '../../platform/envelope.ts'
import { createHealth } from '../../platform/health.ts'
import { uuidv7 } from '../../platform/ids.ts'
import { userUpdated } from '../support/event-factory.ts'
import { eachWithLedger, ledger, receiver } from '../support/fresh-ledger.ts'
import { startProcess, type TestProcess } from '../support/process.ts'
import { testRelayConfig } from '../support/relay.ts'

eachWithLedger()

let processes: TestProcess[]
beforeEach(async () => {
  processes = []
})
afterEach(async () => {
  for (const relay of processes) {
    relay.signal('SIGKILL')
    await relay.exited
  }
})

// Leases are long: what a dead relay held is taken over because it is no longer heard of.
const config = { ...testRelayConfig, attemptTimeoutMs: 1_000, leaseMs: 120_000, retrySchedule: [50, 50, 50] }
const script = fileURLToPath(new URL('../support/relay-process.ts', import.meta.url))

const relayProcess = async (): Promise<TestProcess> => {
  const { connection, key } = ledger
  // Those that are to be given up soon.
  const options = JSON.stringify({ connection, key: key.toString('hex'), config: { ...config, aliveMs: 1_000 } })
  const relay = startProcess(process.execPath, [script, options], { cwd: process.cwd() })
  processes.push(relay)
  await relay.waitFor(/started/)
  return relay
}

test('a relay that is killed between POST and result: another delivers again, with the same id and bytes', async () => {
  await ledger.hook({ url: receiver.url })
  const relay = await relayProcess()
  receiver.answerWith(() => relay.signal('SIGKILL'))
  const [event] = await ledger.record(userUpdated('u1', { round: 1 }))
  await relay.exited
  expect(await ledger.rows('SELECT state, attempts FROM deliveries')).toEqual([{ state: 'pending', attempts: 0 }])

  receiver.answerWith((_received, response) => void response.writeHead(204).end())
  await ledger.record(userUpdated('u1', { round: 2 }))
  await ledger.relay({ config })
  await ledger.untilTrue(`SELECT count(*) = 2 FROM deliveries WHERE state = 'succeeded'`)
  expect(receiver.received.map(({ body }) => body.version)).toEqual([1, 1, 2])
  const [first, again] = receiver.received
  expect([first!.headers['webhook-id'], again!.headers['webhook-id']]).toEqual([event!.id, event!.id])
  expect(first!.raw.equals(again!.raw)).toBe(true)
})

test('a relay that is killed before it takes events in loses none of them', async () => {
  await ledger.hook({ url: receiver.url })
  const relay = await relayProcess()
  relay.signal('SIGKILL')
  await relay.exited
  await ledger.record(userUpdated('u1'), userUpdated('u2'))
  await relayProcess()
  await receiver.until((received) => received.length === 2)
})

test('killed again and again under load: every event arrives, first deliveries in order', async () => {
  await ledger.hook({ url: receiver.url })
  const first = new Map<string, number[]>()
  receiver.answerWith(({ body }, response) => {
    const id = String(body.data['id'])
    const versions = first.get(id) ?? []
    if (!versions.includes(body.version)) versions.push(body.version)
    first.set(id, versions)
    response.writeHead(204).end()
  })
  const entities = Array.from({ length: 20 }, (_, index) => `u${index}`)
  let relay = await relayProcess()
  for (let round = 1; round <= 4; round += 1) {
    const before = receiver.received.length
    for (let version = 0; version < 5; version += 1) await ledger.record(...entities.map((id) => userUpdated(id)))
    await receiver.until((received) => received.length > before + 10)
    relay.signal('SIGKILL')
    await relay.exited
    relay = await relayProcess()
  }
  await ledger.untilTrue(`SELECT count(*) = 400 FROM deliveries WHERE state = 'succeeded'`)
  const inOrder = Array.from({ length: 20 }, (_, index) => index + 1)
  expect([...first.keys()].toSorted()).toEqual(entities.toSorted())
  for (const versions of first.values()) expect(versions).toEqual(inOrder)
})

test('a relay that sleeps until it is given up may not write when it wakes up', async () => {
  await ledger.hook({ url: receiver.url })
  const relay = await relayProcess()
  receiver.answerWith((_received, response) => {
    relay.signal('SIGSTOP')
    response.writeHead(500).end()
  })
  await ledger.record(userUpdated('u1'))
  await receiver.until((received) => received.length === 1)
  receiver.answerWith((_received, response) => void response.writeHead(204).end())
  await ledger.relay({ config })
  await ledger.untilTrue(`SELECT count(*) = 1 FROM deliveries WHERE state = 'succeeded'`)

  relay.signal('SIGCONT')
  await relay.waitFor(/not heard of in time/)
  expect(await ledger.rows(`SELECT state, attempts, last_status FROM deliveries`)).toEqual([
    { state: 'succeeded', attempts: 1, last_status: 204 },
  ])
  expect(await ledger.rows(`SELECT status FROM delivery_attempts`)).toEqual([{ status: 204 }])
})

test('when the database cuts every connection, deliveries go on by themselves', async () => {
  await ledger.hook({ url: receiver.url })
  await ledger.relay({ config })
  await ledger.record(userUpdated('u1'))
  await receiver.until((received) => received.length === 1)
  await ledger
    .rows(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    )
    .catch(() => {})
  // The writer may meet a connection that is dead already; its transaction is then rolled back, and it tries again.
  const record = () => ledger.record(userUpdated('u1'), userUpdated('u2'))
  await expect.poll(() => record().then(Boolean, () => false)).toBe(true)
  await ledger.untilTrue(`SELECT count(*) = 3 FROM deliveries WHERE state = 'succeeded'`)
  const arrived = receiver.received.map(({ body }) => `${body.data['id']} ${body.version}`)
  expect(new Set(arrived)).toEqual(new Set(['u1 1', 'u1 2', 'u2 1']))
})

test('a relay that is believed dead breaks off what it sends before others take over', async () => {
  await ledger.hook({ url: receiver.url })
  let brokenOff = false
  receiver.answerWith((_received, response) => {
    if (receiver.received.length > 1) return void response.writeHead(204).end()
    response.on('close', () => {
      brokenOff = true
    })
  })
  await ledger.relay({ config: { ...config, attemptTimeoutMs: 60_000 } })
  await ledger.record(userUpdated('u1'))
  await receiver.until((received) => received.length === 1)
  // As if its word had not come for long: it learns that from its next one.
  await ledger.rows(`UPDATE relays SET alive_until = now() - interval '1 second'`)
  await expect.poll(() => brokenOff).toBe(true)
  await receiver.until((received) => received.length === 2)
  await ledger.untilTrue(`SELECT count(*) = 1 FROM deliveries WHERE state = 'succeeded' AND attempts = 1`)
  expect(await ledger.rows(`SELECT status FROM delivery_attempts`)).toEqual([{ status: 204 }])
})

test('a relay that stops gives its lanes back and is no longer counted', async () => {
  await ledger.hook({ url: receiver.url })
  const relay = await ledger.relay({ config })
  await ledger.record(userUpdated('u1'))
  await receiver.until((received) => received.length === 1)
  await ledger.untilTrue(`SELECT count(*) = 1 FROM relays WHERE alive_until > now()`)
  await relay.close()
  expect(await ledger.rows(`SELECT * FROM relays`)).toEqual([])
  expect(await ledger.rows(`SELECT * FROM lanes WHERE leased_by IS NOT NULL`)).toEqual([])
})

test('a relay that stops lets running attempts end, and stores what comes of them', async () => {
  await ledger.hook({ url: receiver.url })
  const relay = await ledger.relay({ config })
  const answer = Promise.withResolvers<void>()
  receiver.answerWith((_received, response) => void answer.promise.then(() => response.writeHead(204).end()))
  await ledger.record(userUpdated('u1'))
  await receiver.until(({ length }) => length === 1)
  const closed = relay.close()
  answer.resolve()
  await closed
  expect(await ledger.rows(`SELECT state, attempts FROM deliveries`)).toEqual([{ state: 'succeeded', attempts: 1 }])
  expect(await ledger.rows(`SELECT FROM lanes`)).toEqual([])
  expect(receiver.received).toHaveLength(1)
})

test('a relay without the key of the hooks says so, sends nothing, and leaves them to one that has it', async () => {
  await ledger.hook({ url: receiver.url })
  const health = createHealth()
  await ledger.relay({ health, config, envelope: createEnvelope({ current: randomBytes(32) }) })
  await ledger.record(userUpdated('u1'))
  const { ok, checks } = await health.ready()
  expect(ok).toBe(false)
  expect(checks['webhook secrets']).toEqual({
    ok: false,
    detail: 'the secrets of hooks cannot be opened (1 signing keys): KEY_ENCRYPTION_KEY is another one than theirs',
  })
  const good = createHealth()
  await ledger.relay({ health: good, config, ownDatabase: true })
  await receiver.until((received) => received.length === 1)
  expect((await good.ready()).checks['webhook secrets']).toEqual({ ok: true })
  expect(receiver.received).toHaveLength(1)
})

test('a relay that dies with a test-send in hand leaves it to another', async () => {
  const hook = await ledger.hook({ url: receiver.url })
  const relay = await relayProcess()
  receiver.answerWith(() => relay.signal('SIGKILL'))
  const eventId = uuidv7()
  const payload = Buffer.from(`{"id":"${eventId}","test":true}`)
  await ledger.database.transaction(async (query) => {
    await insertTestSend(query, { hookId: hook.id, eventId, type: 'User.Created', payload, target: undefined })
    await announceLanes(query)
  })
  await relay.exited
  receiver.answerWith((_received, response) => void response.writeHead(204).end())
  await ledger.relay({ config })
  await ledger.untilTrue(`SELECT state = 'succeeded' FROM deliveries`)
  expect(receiver.received.map(({ headers }) => headers['webhook-id'])).toEqual([eventId, eventId])
  await ledger.untilSettled()
})

test('lanes that were claimed and then could not be read are given back, not kept until their lease ends', async () => {
  await ledger.hook({ url: receiver.url })
  const { database } = ledger
  let failures = 0
  const unreliable: typeof database = {
    ...database,
    async query(statement, values) {
      if (statement.name === 'lanes-heads' && failures < 2) {
        failures += 1
        throw new Error('the connection broke')
      }
      return database.query(statement, values)
    },
  }
  await ledger.relay({ config, database: unreliable })
  await ledger.record(userUpdated('u1'))
  await receiver.until((received) => received.length === 1)
  expect(failures).toBe(2)
})
