import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { userEvent, userUpdated } from '../support/event-factory.ts'
import { eachWithLedger, ledger, rawReceiver, receiver } from '../support/fresh-ledger.ts'
import { testRelayConfig } from '../support/relay.ts'

eachWithLedger()

const config = { ...testRelayConfig, attemptTimeoutMs: 2_000, leaseMs: 10_000, retrySchedule: [3_600_000] }
const attempts = async (count: number) => {
  await ledger.untilTrue(`SELECT count(*) >= ${count} FROM delivery_attempts`)
  return ledger.rows<Record<string, unknown>>(
    'SELECT succeeded, status, error, response_body, response_headers FROM delivery_attempts ORDER BY id',
  )
}
/** What comes of one event for a receiver that answers like this. */
const outcomeOf = async (answer: (socket: Socket, request: number) => void) => {
  const { url } = await rawReceiver(answer)
  await ledger.hook({ url })
  await ledger.relay({ config })
  await ledger.record(userUpdated('u1'))
  const [attempt] = await attempts(1)
  return attempt!
}

test('compressed answers are kept as they came: a bomb stays small', async () => {
  const bomb = gzipSync(Buffer.alloc(5_000_000))
  const attempt = await outcomeOf((socket) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`)
    socket.write(bomb)
  })
  expect(attempt).toMatchObject({ succeeded: true, status: 200 })
  expect((attempt['response_body'] as Buffer).equals(bomb)).toBe(true)
})

test.each([
  ['announces more than it sends', 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort'],
  ['sends more than it announces', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok and more'],
  ['ends with the connection', 'HTTP/1.0 200 OK\r\n\r\nbye'],
  ['answers a second time, unasked', 'HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 500 Oops\r\n\r\n'],
  [
    'announces itself many times',
    `${'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(20)}HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n`,
  ],
  ['says its letters in Latin-1', 'HTTP/1.1 200 OK\r\nx-name: Zo\xeb\r\ncontent-length: 0\r\n\r\n'],
])('a receiver that %s is taken at its status line', async (_name, answer) => {
  const attempt = await outcomeOf((socket) => socket.end(Buffer.from(answer, 'latin1')))
  expect(attempt).toMatchObject({ succeeded: true, error: null })
})

test.each([
  ['only announces', 'HTTP/1.1 103 Early Hints\r\n\r\n'],
  ['speaks HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['has a status that is none', 'HTTP/1.1 20 OK\r\n\r\n'],
  ['frames its answer twice', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'],
  ['has NUL in a header', 'HTTP/1.1 200 OK\r\nx: a\0b\r\n\r\n'],
])('a receiver that %s has not taken it', async (_name, answer) => {
  const attempt = await outcomeOf((socket) => socket.end(Buffer.from(answer, 'latin1')))
  expect(attempt).toMatchObject({ succeeded: false, status: null })
  expect(attempt['error']).toBeTypeOf('string')
})

test('a thousand headers are taken; some dozen are kept', async () => {
  const headers = Array.from({ length: 1_000 }, (_, index) => `a${index}: b\r\n`).join('')
  const attempt = await outcomeOf((socket) => socket.end(`HTTP/1.1 200 OK\r\n${headers}content-length: 0\r\n\r\n`))
  expect(attempt).toMatchObject({ succeeded: true, status: 200 })
  expect(Object.keys(attempt['response_headers'] as object)).toHaveLength(64)
})

test('a reset after the whole answer changes nothing', async () => {
  const attempt = await outcomeOf((socket) => {
    socket.write('HTTP/1.1 204 No Content\r\n\r\n', () => socket.resetAndDestroy())
  })
  expect(attempt).toMatchObject({ succeeded: true, status: 204 })
})

test('a kept connection that breaks as it is used again: tried once more at once, on a new one, and counted as one attempt', async () => {
  const odd = await rawReceiver((socket, request) => {
    // Answers the first request of a connection, and is gone at the second.
    if (request === 1) socket.write('HTTP/1.1 204 No Content\r\n\r\n')
    else socket.resetAndDestroy()
  })
  await ledger.hook({ url: odd.url })
  await ledger.relay({ config })
  await ledger.record(userUpdated('u1'))
  await attempts(1)
  await ledger.record(userUpdated('u1'))
  await attempts(2)
  expect(await ledger.rows('SELECT state, attempts FROM deliveries')).toEqual([
    { state: 'succeeded', attempts: 1 },
    { state: 'succeeded', attempts: 1 },
  ])
  expect(odd.seen).toEqual({ connections: 2, requests: 3 })
})

test('a kept connection that breaks within its answer is not tried again at once: the receiver has seen the request', async () => {
  const odd = await rawReceiver((socket, request) => {
    if (request === 1) socket.write('HTTP/1.1 204 No Content\r\n\r\n')
    else socket.write('HTTP/1.1 20', () => socket.destroy())
  })
  await ledger.hook({ url: odd.url })
  await ledger.relay({ config })
  await ledger.record(userUpdated('u1'))
  await attempts(1)
  await ledger.record(userUpdated('u1'))
  const [, second] = await attempts(2)
  expect(second).toMatchObject({ succeeded: false, status: null })
  expect(odd.seen.requests).toBe(2)
})

test('a new connection that breaks is not tried again at once', async () => {
  const odd = await rawReceiver((socket) => socket.resetAndDestroy())
  await ledger.hook({ url: odd.url })
  await ledger.relay({ config })
  await ledger.record(userUpdated('u1'))
  expect(await attempts(1)).toMatchObject([{ error: 'The connection was closed without an answer.' }])
  expect(odd.seen).toEqual({ connections: 1, requests: 1 })
})

test('a receiver that answers and works on for long has taken it', async () => {
  receiver.answerWith((_received, response) => {
    response.writeHead(202)
    response.write('working')
  })
  await ledger.hook({ url: receiver.url })
  await ledger.relay({ config: { ...config, attemptTimeoutMs: 300 } })
  await ledger.record(userUpdated('u1'))
  expect(await attempts(1)).toMatchObject([{ succeeded: true, status: 202, response_body: Buffer.from('working') }])
})

test('two hooks at one URL are signed with their own keys', async () => {
  await ledger.hook({ url: receiver.url })
  await ledger.hook({ url: receiver.url })
  await ledger.relay({ config })
  await ledger.record(userUpdated('u1'))
  await receiver.until((received) => received.length === 2)
  const signatures = receiver.received.map(({ headers }) => headers['webhook-signature'])
  expect(new Set(signatures).size).toBe(2)
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
})

test('unicode, large numbers, __proto__ and the order of members arrive as they were stored, also on retries', async () => {
  let count = 0
  receiver.answerWith((_received, response) => void response.writeHead(++count < 3 ? 500 : 204).end())
  await ledger.hook({ url: receiver.url })
  await ledger.relay({ config: { ...config, retrySchedule: [5, 5] } })
  const data = JSON.parse('{"z":1,"a":"Zoë 🦊 \\u0000 \\u2028","__proto__":{"x":1},"n":9007199254740991}')
  await ledger.record({ ...userUpdated('u1'), data })
  await receiver.until((received) => received.length === 3)
  const [stored] = await ledger.rows<{ payload: Buffer }>('SELECT payload FROM outbox')
  const texts = new Set(receiver.received.map(({ raw: bytes }) => bytes.toString()))
  expect(texts.size).toBe(1)
  expect([...texts][0]!.endsWith(stored!.payload.toString().slice(1))).toBe(true)
  expect(stored!.payload.toString()).toContain(
    '"data":{"z":1,"a":"Zoë 🦊 \\u0000 \u2028","__proto__":{"x":1},"n":9007199254740991}',
  )
})

test('an event of a user who is gone by then still tells of the user', async () => {
  await ledger.hook({ url: receiver.url, events: ['User.Created', 'User.Deleted'] })
  await ledger.record(
    userEvent('User.Created', 'u1', { name: 'Ada' }),
    userEvent('User.Deleted', 'u1', { name: 'Ada' }),
  )
  await ledger.relay({ config })
  await receiver.until((received) => received.length === 2)
  expect(receiver.received.map(({ body }) => [body.event, body.data['name']])).toEqual([
    ['User.Created', 'Ada'],
    ['User.Deleted', 'Ada'],
  ])
})
