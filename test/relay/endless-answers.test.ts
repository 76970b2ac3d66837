import { expect, test } from 'vitest'
import { userUpdated } from '../support/event-factory.ts'
import { eachWithLedger, ledger, rawReceiver } from '../support/fresh-ledger.ts'
import { pour } from '../support/raw-receiver.ts'
import { testRelayConfig } from '../support/relay.ts'

/** What one attempt may cost, whatever a receiver sends: none of these is left to the deadline, which is 15 s. */
eachWithLedger()

const config = { ...testRelayConfig, retrySchedule: [3_600_000] }
const attempts = async (count: number) => {
  await ledger.untilTrue(`SELECT count(*) >= ${count} FROM delivery_attempts`)
  return ledger.rows('SELECT succeeded, status, error FROM delivery_attempts ORDER BY id')
}
/** More than the buffers of two sockets hold. */
const tooMuch = 16 * 1_048_576

/** What comes of one event for a receiver that answers with a beginning and then sends the rest over and over. */
const outcomeOf = async (beginning: string, rest: string) => {
  const gone = Promise.withResolvers<number>()
  const { url } = await rawReceiver((socket) => {
    socket.on('close', () => gone.resolve(socket.bytesWritten))
    socket.write(Buffer.from(beginning, 'latin1'))
    pour(socket, rest, tooMuch)
  })
  await ledger.hook({ url })
  await ledger.relay({ config })
  await ledger.record(userUpdated('u1'))
  const [attempt] = await attempts(1)
  expect(await gone.promise).toBeLessThan(tooMuch)
  return attempt
}

const tooLarge = 'The answer has too many or too large header fields.'
const ok = 'HTTP/1.1 200 OK\r\n'

test.each([
  ['interim answers', '', 'HTTP/1.1 102 Processing\r\n\r\n', 'The answer comes after more than 20 interim answers.'],
  ['one header field', `${ok}x: `, 'y', tooLarge],
  ['header fields', ok, 'x: y\r\n', tooLarge],
  ['white space before the value of a header field', `${ok}x:`, ' ', tooLarge],
  ['a reason phrase', 'HTTP/1.1 200 ', 'OK', tooLarge],
  ['empty lines before the answer', '', '\r\n', tooLarge],
  ['an interim answer', 'HTTP/1.1 103 Early Hints\r\nlink:', ' ', tooLarge],
])('%s without end: a failure, before the time is up', async (_name, beginning, rest, error) => {
  expect(await outcomeOf(beginning, rest)).toEqual({ succeeded: false, status: null, error })
})

const chunked = 'transfer-encoding: chunked\r\n\r\n'
test.each([
  ['a body', `${ok}\r\n`, 'x'],
  ['an extension of a chunk', `${ok}${chunked}2;x=`, 'y'],
  [
    'extensions of small chunks',
    ok + chunked,
    '1;x=yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\nz\r\n',
  ],
  ['zeros before the size of a chunk', ok + chunked, '0'],
  ['a trailer', `${ok}${chunked}0\r\nx:`, ' '],
])('%s without end: the status has decided, and the connection ends', async (_name, beginning, rest) => {
  expect(await outcomeOf(beginning, rest)).toEqual({ succeeded: true, status: 200, error: null })
})

/** What comes of one event for a receiver that answers in pieces of a thousand bytes, and how many bytes were sent. */
const piecemeal = async (answer: string) => {
  const gone = Promise.withResolvers<number>()
  const { url } = await rawReceiver((socket) => {
    const before = socket.bytesWritten
    socket.on('close', () => gone.resolve(socket.bytesWritten - before))
    const next = (from: number) => {
      if (socket.destroyed || from >= answer.length) return
      socket.write(answer.slice(from, from + 1_000), 'latin1', () => setImmediate(next, from + 1_000))
    }
    next(0)
  })
  await ledger.hook({ url })
  await ledger.relay({ config })
  await ledger.record(userUpdated('u1'))
  const [attempt] = await attempts(1)
  return { attempt, sent: await gone.promise }
}

test('of a body 16 kB are read, chunks with their extensions', async () => {
  const { attempt, sent } = await piecemeal(ok + chunked + `1;x=${'y'.repeat(100)}\r\nz\r\n`.repeat(1_000))
  expect(attempt).toEqual({ succeeded: true, status: 200, error: null })
  expect(sent).toBeGreaterThan(16_384)
  expect(sent).toBeLessThan(24_576)
})

test('of what comes before a body 64 kB are read', async () => {
  const { attempt, sent } = await piecemeal(
    `${ok}${`x: ${' '.repeat(1_000)}y\r\n`.repeat(100)}content-length: 0\r\n\r\n`,
  )
  expect(attempt).toEqual({ succeeded: false, status: null, error: tooLarge })
  expect(sent).toBeGreaterThan(65_536)
  expect(sent).toBeLessThan(73_728)
})

const end = `${ok}content-length: 0\r\nconnection: close\r\n\r\n`
test.each([
  ['a head of 60 kB', `${ok}x: ${'y'.repeat(60_000)}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`],
  ['20 interim answers of 3 kB', `HTTP/1.1 103 Early Hints\r\nlink: ${'y'.repeat(3_000)}\r\n\r\n`.repeat(20) + end],
])('%s is taken', async (_name, answer) => {
  expect(await piecemeal(answer)).toEqual({
    attempt: { succeeded: true, status: 200, error: null },
    sent: answer.length,
  })
})

test.each([
  [
    '21 interim answers',
    'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(21) + end,
    'The answer comes after more than 20 interim answers.',
  ],
  [
    '20 interim answers of 4 kB',
    `HTTP/1.1 103 Early Hints\r\nlink: ${'y'.repeat(4_000)}\r\n\r\n`.repeat(20) + end,
    tooLarge,
  ],
])('%s are a failure, whatever comes then', async (_name, answer, error) => {
  expect((await piecemeal(answer)).attempt).toEqual({ succeeded: false, status: null, error })
})

test('what comes behind an answer ends the connection, not only when the next request is due', async () => {
  const gone = Promise.withResolvers<number>()
  const odd = await rawReceiver((socket) => {
    socket.write('HTTP/1.1 204 No Content\r\n\r\n')
    if (odd.seen.connections > 1) return
    socket.on('close', () => gone.resolve(socket.bytesWritten))
    pour(socket, '\r\n', tooMuch)
  })
  await ledger.hook({ url: odd.url })
  await ledger.relay({ config })
  await ledger.record(userUpdated('u1'))
  const taken = { succeeded: true, status: 204, error: null }
  expect(await attempts(1)).toEqual([taken])
  expect(await gone.promise).toBeLessThan(tooMuch)
  await ledger.record(userUpdated('u1'))
  expect(await attempts(2)).toEqual([taken, taken])
  expect(odd.seen).toEqual({ connections: 2, requests: 2 })
})
