import { Client } from 'pg'
import { expect, test } from 'vitest'
import { purgeDead } from '../../deliveries/reopen-store.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { userUpdated } from '../support/event-factory.ts'
import { anotherReceiver, eachWithLedger, ledger, rawReceiver, receiver } from '../support/fresh-ledger.ts'
import { testRelayConfig } from '../support/relay.ts'
import { until } from '../support/until.ts'

eachWithLedger()

const attemptsMade = (count: number) =>
  ledger
    .untilTrue(`SELECT count(*) >= ${count} FROM delivery_attempts`)
    .then(() =>
      ledger.rows(
        `SELECT succeeded, status, error, octet_length(response_body) AS size FROM delivery_attempts ORDER BY id`,
      ),
    )
const patient = { ...testRelayConfig, retrySchedule: [3_600_000] }
/** For receivers that take until the deadline. */
const hurried = { ...patient, attemptTimeoutMs: 300, leaseMs: 10_000 }

test('2xx is a success, and nothing else', async () => {
  const statuses = [200, 201, 202, 204, 299, 300, 304, 400, 401, 404, 500, 599]
  receiver.answerWith(({ url }, response) => void response.writeHead(Number(url.slice(-3))).end())
  for (const status of statuses) await ledger.hook({ url: `${receiver.url}?answer=${status}` })
  await ledger.relay({ config: patient })
  await ledger.record(userUpdated('u1'))
  const attempts = (await attemptsMade(statuses.length)) as { status: number; succeeded: boolean }[]
  expect(
    attempts
      .filter(({ succeeded }) => succeeded)
      .map(({ status }) => status)
      .toSorted(),
  ).toEqual(statuses.slice(0, 5))
  expect(
    attempts
      .filter(({ succeeded }) => !succeeded)
      .map(({ status }) => status)
      .toSorted(),
  ).toEqual(statuses.slice(5))
})

test('a redirect is a failure and is not followed', async () => {
  const elsewhere = await anotherReceiver()
  receiver.answerWith((_received, response) => void response.writeHead(307, { location: elsewhere.url }).end())
  await ledger.hook({ url: receiver.url })
  await ledger.relay({ config: patient })
  await ledger.record(userUpdated('u1'))
  expect(await attemptsMade(1)).toEqual([
    { succeeded: false, status: 307, error: 'The receiver answered 307.', size: 0 },
  ])
  expect(elsewhere.received).toEqual([])
})

test('a receiver that accepts and never answers is a failure when the time is up', async () => {
  await ledger.hook(await rawReceiver(() => {}))
  await ledger.relay({ config: hurried })
  await ledger.record(userUpdated('u1'))
  expect(await attemptsMade(1)).toEqual([
    { succeeded: false, status: null, error: 'There was no answer within 300 ms.', size: null },
  ])
})

test('dripping headers end with the deadline', async () => {
  const { url } = await rawReceiver((socket) => {
    socket.write('HTTP/1.1 200 OK\r\n')
    const drip = setInterval(() => socket.write('x-a: b\r\n'), 20)
    socket.on('close', () => clearInterval(drip))
  })
  await ledger.hook({ url })
  await ledger.relay({ config: hurried })
  await ledger.record(userUpdated('u1'))
  expect(await attemptsMade(1)).toMatchObject([{ succeeded: false, error: 'There was no answer within 300 ms.' }])
})

test('a dripping body ends with the deadline; its status has decided', async () => {
  let closed = false
  const { url } = await rawReceiver((socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n')
    const drip = setInterval(() => socket.write('.'), 20)
    socket.on('close', () => {
      closed = true
      clearInterval(drip)
    })
  })
  await ledger.hook({ url })
  await ledger.relay({ config: hurried })
  await ledger.record(userUpdated('u1'))
  const [attempt] = await attemptsMade(1)
  expect(attempt).toMatchObject({ succeeded: true, status: 200, error: null })
  await expect.poll(() => closed).toBe(true)
})

test('an endless body is cut at 16 kB', async () => {
  const { url } = await rawReceiver((socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n')
    const pour = () => {
      while (!socket.destroyed && socket.write(Buffer.alloc(65_536, 'x')));
    }
    socket.on('drain', pour)
    pour()
  })
  await ledger.hook({ url })
  await ledger.relay({ config: patient })
  await ledger.record(userUpdated('u1'))
  expect(await attemptsMade(1)).toEqual([{ succeeded: true, status: 200, error: null, size: 16_384 }])
})

test('a connection that is refused, reset, or answers nonsense is a failure with its reason', async () => {
  const gone = await anotherReceiver()
  await gone.close()
  await ledger.hook({ url: gone.url })
  await ledger.hook(await rawReceiver((socket) => socket.destroy()))
  await ledger.hook(await rawReceiver((socket) => socket.end('ERR unknown command\r\n')))
  await ledger.hook(await rawReceiver((socket) => socket.end(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(70_000)}\r\n\r\n`)))
  await ledger.relay({ config: patient })
  await ledger.record(userUpdated('u1'))
  const attempts = await attemptsMade(4)
  expect(attempts.map(({ error, status }) => [status, error]).toSorted()).toEqual(
    [
      [null, 'The connection was refused.'],
      [null, 'The connection was closed without an answer.'],
      [null, 'The answer is not HTTP.'],
      [null, 'The answer has too many or too large header fields.'],
    ].toSorted(),
  )
})

test('a host that is not allowed is refused at connect, whatever was accepted at registration', async () => {
  await ledger.hook({ url: `http://rebinding.test:${receiver.port}/` })
  await ledger.relay({
    config: patient,
    resolve: async () => [{ address: '10.0.0.1', family: 4 }],
  })
  await ledger.record(userUpdated('u1'))
  expect(await attemptsMade(1)).toEqual([
    {
      succeeded: false,
      status: null,
      error: 'The host rebinding.test has no address that is allowed: it is a private address.',
      size: null,
    },
  ])
  expect(receiver.received).toEqual([])
})

test('a retry has the same id and bytes, and a signature of its own time', async () => {
  let time = Date.parse('2026-01-02T03:04:05Z')
  receiver.answerWith((_received, response) => {
    time += 60_000
    response.writeHead(receiver.received.length < 3 ? 500 : 200).end()
  })
  await ledger.hook({ url: receiver.url })
  await ledger.relay({ config: { ...testRelayConfig, retrySchedule: [10, 10] }, now: () => new Date(time) })
  await ledger.record(userUpdated('u1'))
  await ledger.untilTrue(`SELECT state = 'succeeded' AND attempts = 3 FROM deliveries`)
  const { received } = receiver
  expect(new Set(received.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
  expect(new Set(received.map(({ raw: bytes }) => bytes.toString())).size).toBe(1)
  expect(new Set(received.map(({ headers }) => headers['webhook-timestamp'])).size).toBe(3)
  expect(new Set(received.map(({ headers }) => headers['webhook-signature'])).size).toBe(3)
})

test('a delivery that is given up leaves a gap that its successor tells of', async () => {
  receiver.answerWith(({ body }, response) => void response.writeHead(body.version === 1 ? 500 : 204).end())
  await ledger.hook({ url: receiver.url })
  await ledger.relay({ config: { ...testRelayConfig, retrySchedule: [10] } })
  await ledger.record(userUpdated('u1'), userUpdated('u1'), userUpdated('u1'))
  await receiver.until((received) => received.length === 4)
  await ledger.untilSettled()
  expect(receiver.received.map(({ body, headers }) => [body.version, headers['surrogate-gap']])).toEqual([
    [1, undefined],
    [1, undefined],
    [2, 'true'],
    [3, undefined],
  ])
  expect(await ledger.rows(`SELECT version, state, attempts, last_status FROM deliveries ORDER BY version`)).toEqual([
    { version: 1, state: 'dead', attempts: 2, last_status: 500 },
    { version: 2, state: 'succeeded', attempts: 1, last_status: 204 },
    { version: 3, state: 'succeeded', attempts: 1, last_status: 204 },
  ])
})

test('what follows an event that was given up says so, also when its dead letter was purged', async () => {
  const hook = await ledger.hook({ url: receiver.url })
  await ledger.relay({ config: { ...testRelayConfig, retrySchedule: [] } })
  receiver.answerWith(({ body }, response) => void response.writeHead(body.version === 2 ? 500 : 204).end())
  for (const id of ['u1', 'u1', 'u2']) {
    await ledger.record(userUpdated(id))
    await ledger.untilSettled()
  }
  expect(await ledger.database.transaction((query) => purgeDead(query, hook.id))).toBe(1)
  expect(await ledger.database.transaction((query) => purgeDead(query, hook.id))).toBe(0)
  for (const id of ['u1', 'u1']) {
    await ledger.record(userUpdated(id))
    await ledger.untilSettled()
  }
  const gaps = receiver.received.map(({ body, headers }) => [body.data['id'], body.version, headers['surrogate-gap']])
  expect(gaps).toEqual([
    ['u1', 1, undefined],
    ['u1', 2, undefined],
    ['u2', 1, undefined],
    ['u1', 3, 'true'],
    ['u1', 4, undefined],
  ])
})

test('410 disables the hook; what it misses waits for it', async () => {
  receiver.answerWith((_received, response) => void response.writeHead(410).end())
  const hook = await ledger.hook({ url: receiver.url })
  await ledger.relay()
  await ledger.record(userUpdated('u1'))
  await ledger.untilTrue(`SELECT NOT enabled FROM hooks`)
  expect(await ledger.rows(`SELECT disabled_reason, disabled_at IS NOT NULL AS dated FROM hooks`)).toEqual([
    { disabled_reason: 'The receiver answered 410 Gone.', dated: true },
  ])
  await ledger.record(userUpdated('u1'), userUpdated('u2'))
  await ledger.untilTrue(`SELECT count(*) = 3 FROM deliveries`)
  expect(receiver.received).toHaveLength(1)
  receiver.answerWith((_received, response) => void response.writeHead(204).end())
  await ledger.rows(`UPDATE hooks SET enabled = true WHERE id = $1`, hook.id)
  await ledger.untilTrue(`SELECT count(*) = 3 FROM deliveries WHERE state = 'succeeded'`)
  expect(
    receiver.received
      .slice(1)
      .map(({ body }) => `${body.data['id']} ${body.version}`)
      .toSorted(),
  ).toEqual(['u1 1', 'u1 2', 'u2 1'])
})

test('429 with Retry-After silences the whole hook', async () => {
  receiver.answerWith((_received, response) => void response.writeHead(429, { 'retry-after': '3600' }).end())
  await ledger.hook({ url: receiver.url })
  await ledger.relay()
  await ledger.record(userUpdated('u1'))
  await ledger.untilTrue(`SELECT paused_until > now() + interval '59 minutes' FROM hooks`)
  await ledger.record(userUpdated('u2'), userUpdated('u3'))
  await ledger.untilTrue(`SELECT count(*) = 3 FROM deliveries`)
  const other = await anotherReceiver()
  await ledger.hook({ url: other.url })
  await ledger.record(userUpdated('u4'))
  await other.until((received) => received.length === 1)
  expect(receiver.received).toHaveLength(1)
})

test('a lane that is kept for more sends nothing once another lane was asked for silence', async () => {
  await ledger.hook({ url: receiver.url })
  const answers = new Map<string, () => void>()
  receiver.answerWith(({ body }, response) => {
    const name = `${body.data['id']} ${body.version}`
    if (name === 'loud 1') answers.set(name, () => response.writeHead(429, { 'retry-after': '3600' }).end())
    else if (name === 'busy 8') answers.set(name, () => response.writeHead(204).end())
    else response.writeHead(204).end()
  })
  await ledger.record(...Array.from({ length: 20 }, () => userUpdated('busy')), userUpdated('loud'))
  const metrics = createMetrics()
  await ledger.relay({ metrics, config: { ...testRelayConfig, freshMs: 0 } })
  await receiver.until(() => answers.size === 2)
  await attemptsMade(7)
  const [lane, hook] = [new Client(ledger.connection), new Client(ledger.connection)]
  await Promise.all([lane.connect(), hook.connect()])
  try {
    await lane.query(`BEGIN; SELECT FROM lanes WHERE entity_id = 'busy' FOR UPDATE`)
    await hook.query(`BEGIN; SELECT FROM hooks FOR UPDATE`)
    const waits = (table: string) =>
      ledger.untilTrue(`SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database()
        AND wait_event_type = 'Lock' AND query LIKE '%FROM ${table}%FOR%UPDATE%'`)
    // The busy lane is about to be kept when the other is asked for silence, which cannot be stored yet.
    answers.get('busy 8')!()
    await waits('lanes')
    answers.get('loud 1')!()
    await until(async () => {
      const { text } = await metrics.render()
      expect(text).toContain('surrogate_webhook_attempts_total{result="retrying"} 1')
    })
    await lane.query('COMMIT')
    await waits('hooks')
    await hook.query('COMMIT')
    await ledger.untilTrue(`SELECT count(*) = 2 FROM lanes WHERE leased_by IS NULL`)
    expect(receiver.received).toHaveLength(9)
  } finally {
    await Promise.all([lane.end(), hook.end()])
  }
})
