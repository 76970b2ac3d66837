import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { purgeDead } from '../../events/reopen-store.ts'
import type { Database } from '../../platform/database.ts'
import { userEvent, userUpdated } from '../support/event-factory.ts'
import { anotherReceiver, eachWithLedger, ledger, receiver } from '../support/fresh-ledger.ts'
import { fillDisk } from '../support/full-disk.ts'
import { startProcess, type TestProcess } from '../support/process.ts'
import { testRelayConfig } from '../support/relay.ts'
import { type Answer, slowAnswer, type WebhookReceiver } from '../support/webhook-receiver.ts'

eachWithLedger()

/** What a relay sends while it takes it in, to receivers that it knows to be prompt. */

const accept: Answer = (_received, response) => void response.writeHead(204).end()
const arrived = (at: WebhookReceiver) => at.received.map(({ body }) => `${body.data['id']} ${body.version}`)

/** From now on the relay knows the receivers of all hooks as prompt. What they have received is forgotten. */
const acquaint = async (...receivers: WebhookReceiver[]) => {
  for (let before = -1; before !== (await leases()); ) {
    before = await leases()
    await ledger.record(userUpdated('acquainted'))
    await ledger.untilSettled()
  }
  for (const one of receivers) one.received.length = 0
}
/** How many lanes have been leased so far. */
const leases = async () => {
  const [row] = await ledger.rows<{ count: number }>(
    `SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS count FROM lane_fences`,
  )
  return row!.count
}
const deliveries = (condition = 'true') =>
  ledger.rows(
    `SELECT entity_id AS id, version::int, state, attempts FROM deliveries
     WHERE entity_id <> 'acquainted' AND ${condition} ORDER BY entity_id, version`,
  )

test('what a prompt receiver accepts is stored once, when it is done: no lane is opened for it', async () => {
  const hook = await ledger.hook({ url: receiver.url })
  await ledger.relay()
  await acquaint(receiver)
  const before = await leases()
  await ledger.record(userUpdated('u1'), userUpdated('u2'), userUpdated('u1'))
  await ledger.untilSettled()
  expect(await leases()).toBe(before)
  expect(arrived(receiver).toSorted()).toEqual(['u1 1', 'u1 2', 'u2 1'])
  expect(await deliveries()).toEqual([
    { id: 'u1', version: 1, state: 'succeeded', attempts: 1 },
    { id: 'u1', version: 2, state: 'succeeded', attempts: 1 },
    { id: 'u2', version: 1, state: 'succeeded', attempts: 1 },
  ])
  const [attempt] = await ledger.rows(
    `SELECT attempt.hook_id, succeeded, status, address, error, request_headers->>'webhook-id' AS id, response_headers IS NOT NULL AS answered
     FROM delivery_attempts AS attempt JOIN deliveries ON deliveries.id = delivery_id
     WHERE entity_id = 'u1' AND version = 2 AND attempt.at >= created_at AND finished_at >= attempt.at`,
  )
  const id = receiver.received.find(({ body }) => body.data['id'] === 'u1' && body.version === 2)!.headers['webhook-id']
  expect(attempt).toEqual({
    hook_id: hook.id,
    succeeded: true,
    status: 204,
    address: '127.0.0.1',
    error: null,
    id,
    answered: true,
  })
})

test('a receiver that suddenly takes its time holds up no other: its event goes on in a lane, and is sent once', async () => {
  const slow = await anotherReceiver()
  const { id } = await ledger.hook({ url: slow.url })
  await ledger.hook({ url: receiver.url })
  await ledger.relay()
  await acquaint(receiver, slow)
  const answer = Promise.withResolvers<void>()
  slow.answerWith((_received, response) => void answer.promise.then(() => response.writeHead(204).end()))
  await ledger.record(userUpdated('u1'), userUpdated('u1'))
  await ledger.untilTrue(`SELECT NOT EXISTS (SELECT FROM outbox_pending)`)
  await ledger.record(userUpdated('u2'))
  await receiver.until(({ length }) => length === 3)
  await ledger.untilTrue(`SELECT NOT EXISTS (SELECT FROM outbox_pending)`)
  expect(await deliveries(`hook_id = '${id}' AND finished_at IS NULL`)).toHaveLength(3)
  expect(await deliveries(`hook_id <> '${id}' AND state = 'succeeded'`)).toHaveLength(3)
  expect(arrived(slow)).not.toContain('u1 2')

  answer.resolve()
  await ledger.untilSettled()
  expect(arrived(slow).toSorted()).toEqual(['u1 1', 'u1 2', 'u2 1'])
  expect(await deliveries(`state = 'succeeded' AND attempts = 1`)).toHaveLength(6)
})

test('a first attempt that fails counts as any other, and nothing of its entity overtakes it', async () => {
  const hook = await ledger.hook({ url: receiver.url })
  await ledger.relay({ config: { ...testRelayConfig, retrySchedule: [20, 20] } })
  await acquaint(receiver)
  let failures = 0
  receiver.answerWith(({ body }, response) => {
    const fails = body.version === 2 && failures === 0
    if (fails) failures += 1
    response.writeHead(fails ? 500 : 204).end()
  })
  await ledger.record(userUpdated('u1'), userUpdated('u1'), userUpdated('u1'))
  await ledger.untilTrue(`SELECT failures = 1 FROM hooks WHERE id = $1`, hook.id)
  await ledger.untilSettled()
  expect(arrived(receiver)).toEqual(['u1 1', 'u1 2', 'u1 2', 'u1 3'])
  expect(await deliveries()).toEqual([
    { id: 'u1', version: 1, state: 'succeeded', attempts: 1 },
    { id: 'u1', version: 2, state: 'succeeded', attempts: 2 },
    { id: 'u1', version: 3, state: 'succeeded', attempts: 1 },
  ])
  const statuses = await ledger.rows(
    `SELECT status FROM delivery_attempts JOIN deliveries ON deliveries.id = delivery_id
     WHERE entity_id = 'u1' AND version = 2 ORDER BY delivery_attempts.id`,
  )
  expect(statuses).toEqual([{ status: 500 }, { status: 204 }])
  expect(await ledger.rows(`SELECT failures FROM hooks`)).toEqual([{ failures: 0 }])
})

test('a receiver that begins to fail is left alone after a few attempts, however many events there are', async () => {
  const failing = await anotherReceiver()
  await ledger.hook({ url: failing.url })
  await ledger.hook({ url: receiver.url })
  await ledger.relay({ config: { ...testRelayConfig, retrySchedule: [60_000], probeSchedule: [60_000] } })
  await acquaint(receiver, failing)
  failing.answerWith((_received, response) => void response.writeHead(500).end())
  await ledger.record(...Array.from({ length: 250 }, (_, index) => userUpdated(`u${index}`)))
  await receiver.until(({ length }) => length === 250)
  await ledger.untilTrue(`SELECT count(*) = 1 FROM hooks WHERE open_since IS NOT NULL`)
  await ledger.untilTrue(`SELECT count(*) = 0 FROM lanes WHERE leased_by IS NOT NULL`)
  expect(failing.received.length).toBeLessThan(60)
})

test('an event that is too big to be read in advance is not overtaken', async () => {
  await ledger.hook({ url: receiver.url })
  await ledger.relay()
  await acquaint(receiver)
  const before = await leases()
  const big = userUpdated('u1', { fill: 'x'.repeat(40_000) })
  await ledger.record(userUpdated('u1'), big, userUpdated('u1'), userUpdated('u2'))
  await ledger.untilSettled()
  expect(arrived(receiver).filter((one) => one.startsWith('u1'))).toEqual(['u1 1', 'u1 2', 'u1 3'])
  expect(receiver.received).toHaveLength(4)
  expect(await leases()).toBe(before + 1)
})

test('what follows an event that was given up says so, also when its dead letter was purged', async () => {
  const hook = await ledger.hook({ url: receiver.url })
  await ledger.relay({ config: { ...testRelayConfig, retrySchedule: [] } })
  await acquaint(receiver)
  receiver.answerWith(({ body }, response) => void response.writeHead(body.version === 2 ? 500 : 204).end())
  for (const _ of [1, 2]) {
    await ledger.record(userUpdated('u1'))
    await ledger.untilSettled()
  }
  await ledger.record(userUpdated('u2'))
  await ledger.untilSettled()
  expect(await ledger.database.transaction((query) => purgeDead(query, hook.id))).toBe(1)
  expect(await ledger.database.transaction((query) => purgeDead(query, hook.id))).toBe(0)
  await ledger.record(userUpdated('u1'))
  await ledger.untilSettled()
  await ledger.record(userUpdated('u1'))
  await ledger.untilSettled()
  const gaps = receiver.received.map(({ body, headers }) => [body.data['id'], body.version, headers['surrogate-gap']])
  expect(gaps).toEqual([
    ['u1', 1, undefined],
    ['u1', 2, undefined],
    ['u2', 1, undefined],
    ['u1', 3, 'true'],
    ['u1', 4, undefined],
  ])
})

test('while a first attempt is under way its hook can be changed', async () => {
  const hook = await ledger.hook({ url: receiver.url })
  await ledger.relay()
  await acquaint(receiver)
  const changed = Promise.withResolvers<unknown>()
  receiver.answerWith((received, response) => {
    void ledger
      .rows(`SELECT FROM hooks WHERE id = $1 FOR UPDATE NOWAIT`, hook.id)
      .then(changed.resolve, changed.reject)
      .finally(() => accept(received, response))
  })
  await ledger.record(userUpdated('u1'))
  expect(await changed.promise).toHaveLength(1)
})

test('a transaction that is lost with its connection costs no receiver anything: nothing is sent twice', async () => {
  await ledger.hook({ url: receiver.url })
  await ledger.relay({ ownDatabase: true, config: { ...testRelayConfig, retrySchedule: [20] } })
  await acquaint(receiver)
  let answered = 0
  receiver.answerWith(async ({ body }, response) => {
    answered += 1
    // The second one, so that the first is stored with what is lost; and a failure among them.
    if (answered === 2)
      await ledger.rows(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'`,
      )
    response.writeHead(body.version === 3 && answered === 3 ? 500 : 204).end()
  })
  await ledger.record(userUpdated('u1'), userUpdated('u1'), userUpdated('u1'), userUpdated('u2'))
  await ledger.untilSettled()
  expect(arrived(receiver).toSorted()).toEqual(
    answered === 4 ? ['u1 1', 'u1 2', 'u1 3', 'u2 1'] : ['u1 1', 'u1 2', 'u1 3', 'u1 3', 'u2 1'],
  )
  expect(arrived(receiver).filter((one, index, all) => one.startsWith('u1') && all.indexOf(one) === index)).toEqual([
    'u1 1',
    'u1 2',
    'u1 3',
  ])
  expect(await deliveries(`state = 'succeeded'`)).toHaveLength(4)
})

test('while the database has no room for results nothing is sent again', async () => {
  await ledger.hook({ url: receiver.url })
  await ledger.relay()
  await acquaint(receiver)
  const disk = await fillDisk(ledger.database.pool, 'delivery_attempts')
  await ledger.record(userUpdated('u1'), userUpdated('u1'))
  await expect.poll(disk.refusals).toBeGreaterThanOrEqual(3)
  expect(await deliveries()).toEqual([])
  await disk.free()
  await ledger.untilSettled()
  expect(arrived(receiver)).toEqual(['u1 1', 'u1 2'])
  expect(await deliveries(`state = 'succeeded' AND attempts = 1`)).toHaveLength(2)
})

test('a lane that is just being leased is not taken for one that is unknown', async () => {
  await ledger.hook({ url: receiver.url })
  const { database } = ledger
  const lookedWhatIsKnown = Promise.withResolvers<void>()
  let claimFails = false
  const unreliable: Database = {
    ...database,
    async query(statement, values) {
      if (statement.name === 'lanes-claim' && claimFails) {
        claimFails = false
        throw new Error('the connection broke')
      }
      const rows = await database.query(statement, values)
      if (statement.name === 'relays-next-fence') lookedWhatIsKnown.resolve()
      return rows as never[]
    },
    transaction: (work, options) =>
      database.transaction(
        (query) =>
          work(async (statement, values) => {
            const rows = await query(statement, values)
            if (statement.name === 'first-attempts-lease') await lookedWhatIsKnown.promise
            return rows as never[]
          }),
        options,
      ),
  }
  await ledger.relay({ database: unreliable })
  await acquaint(receiver)
  receiver.answerWith((received, response) => void setTimeout(() => accept(received, response), 500))
  claimFails = true
  await ledger.record(userUpdated('u1'))
  await ledger.untilSettled()
  await lookedWhatIsKnown.promise
  expect(arrived(receiver)).toEqual(['u1 1'])
  expect(await deliveries()).toEqual([{ id: 'u1', version: 1, state: 'succeeded', attempts: 1 }])
})

test('a relay that stops lets first attempts end, and stores what comes of them', async () => {
  await ledger.hook({ url: receiver.url })
  const relay = await ledger.relay()
  await acquaint(receiver)
  const answer = Promise.withResolvers<void>()
  receiver.answerWith((_received, response) => void answer.promise.then(() => response.writeHead(204).end()))
  await ledger.record(userUpdated('u1'))
  await receiver.until(({ length }) => length === 1)
  const closed = relay.close()
  await ledger.untilTrue(`SELECT NOT EXISTS (SELECT FROM outbox_pending)`)
  answer.resolve()
  await closed
  expect(await deliveries()).toEqual([{ id: 'u1', version: 1, state: 'succeeded', attempts: 1 }])
  expect(await ledger.rows(`SELECT FROM lanes`)).toEqual([])
  expect(receiver.received).toHaveLength(1)
})

test('what many hooks want of one event is sent to no more of them at once than lanes may be under way', async () => {
  const maxLanes = 60
  for (let hook = 0; hook < 30; hook += 1) await ledger.hook({ url: receiver.url })
  await ledger.relay({ config: { ...testRelayConfig, maxLanes } })
  await acquaint(receiver)
  const slow = slowAnswer(10)
  receiver.answerWith(slow.answer)
  await ledger.record(userUpdated('u1'), userUpdated('u2'), userUpdated('u1'))
  await ledger.untilSettled()
  expect(receiver.received).toHaveLength(30 * 3)
  expect(slow.most).toBeLessThanOrEqual(maxLanes)
})

test('a backlog for one receiver does not hold up the events behind it that are for another', async () => {
  const other = await anotherReceiver()
  await ledger.hook({ url: receiver.url })
  await ledger.hook({ url: other.url, events: ['User.Created'] })
  await ledger.relay()
  await acquaint(receiver)
  receiver.answerWith((received, response) => void setTimeout(() => accept(received, response), 20))
  await ledger.rows(`
    WITH event AS (
      INSERT INTO outbox (id, entity_kind, entity_id, version, type, correlation_id, payload)
      SELECT gen_random_uuid(), 'user', 'u' || n, 1, 'User.Data.Updated', gen_random_uuid(),
        convert_to('{"id":"' || n || '","event":"x","version":1,"data":{"id":"u' || n || '"}}', 'UTF8')
      FROM generate_series(1, 4000) n RETURNING seq)
    INSERT INTO outbox_pending (seq) SELECT seq FROM event`)
  await ledger.record(userEvent('User.Created', 'behind'))
  await other.until((received) => received.some(({ body }) => body.data['id'] === 'behind'))
  expect(receiver.received.length).toBeLessThan(400)
})

const script = fileURLToPath(new URL('../support/relay-process.ts', import.meta.url))
let processes: TestProcess[]
beforeEach(() => {
  processes = []
})
afterEach(async () => {
  for (const relay of processes) {
    relay.signal('SIGKILL')
    await relay.exited
  }
})
const relayProcess = async (): Promise<TestProcess> => {
  const { connection, key } = ledger
  const config = { ...testRelayConfig, aliveMs: 1_000 }
  const options = JSON.stringify({ connection, key: key.toString('hex'), config })
  const relay = startProcess(process.execPath, [script, options], { cwd: process.cwd() })
  processes.push(relay)
  await relay.waitFor(/started/)
  return relay
}

test.for(['SIGKILL', 'SIGSTOP'] as const)(
  'a relay that gets %s while it takes events in has taken none of them: another sends them, in order',
  async (signal) => {
    await ledger.hook({ url: receiver.url })
    const relay = await relayProcess()
    await acquaint(receiver)
    receiver.answerWith((received, response) => {
      if (received.body.version === 2) relay.signal(signal)
      accept(received, response)
    })
    const recorded = await ledger.record(userUpdated('u1'), userUpdated('u1'), userUpdated('u1'))
    await receiver.until(({ length }) => length === 2)
    expect(await deliveries()).toEqual([])
    receiver.answerWith(accept)
    await ledger.relay()
    await ledger.untilSettled()
    expect(arrived(receiver)).toEqual(['u1 1', 'u1 2', 'u1 1', 'u1 2', 'u1 3'])
    expect(receiver.received.map(({ headers }) => headers['webhook-id'])).toEqual(
      [0, 1, 0, 1, 2].map((index) => recorded[index]!.id),
    )
    relay.signal('SIGCONT')
    if (signal === 'SIGSTOP') await relay.waitFor(/could not be taken in/)
    expect(await deliveries(`state = 'succeeded' AND attempts = 1`)).toHaveLength(3)
    expect(
      await ledger.rows(
        `SELECT FROM delivery_attempts JOIN deliveries ON deliveries.id = delivery_id WHERE entity_id <> 'acquainted'`,
      ),
    ).toHaveLength(3)
    expect(receiver.received).toHaveLength(5)
  },
)
