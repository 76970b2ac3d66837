import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask, type PolicyServer, startPolicyServer } from '../../support/policy-server.ts'
import { until } from '../../support/until.ts'
import { writeFiles } from '../rule-folder.ts'
import { rules } from './rules.ts'

/** What callers may send to `surrogate policy serve`, and that it goes on afterwards. */

let folder: string
let server: PolicyServer

const maxInput = 100_000

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'surrogate-data-api-'))
  await writeFiles(folder, rules)
  server = await startPolicyServer(folder, ['--max-input', String(maxInput)])
})
afterAll(async () => {
  // Whatever the tests did, it is there, and ends in order.
  expect(await ask(server.url, fine)).toMatchObject({ status: 200, body: { result: { allow: true } } })
  expect((await server.stop()).code).toBe(0)
  await rm(folder, { recursive: true })
})

const fine = { path: '/v1/data/testmod/decision', body: '{"input": {"user": "alice"}}' }
const whole = '/v1/data/testmod/whole'
const refused = (message: RegExp) => ({
  status: 400,
  body: { code: 'invalid_parameter', message: expect.stringMatching(message) },
})

test('a body of the largest size is read, one byte more is not', async () => {
  const bodyOf = (length: number) => `{"input": "${'a'.repeat(length - 12)}"}`.slice(0, length)
  const path = '/v1/data/testmod/decision'
  expect(bodyOf(maxInput)).toHaveLength(maxInput)
  const padded = (length: number) => `${fine.body}${' '.repeat(length - fine.body.length)}`
  expect(await ask(server.url, { path, body: padded(maxInput) })).toMatchObject({ status: 200 })
  expect(await ask(server.url, { path, body: padded(maxInput + 1) })).toMatchObject(refused(/larger than 100000 bytes/))
})

test('a body without a length is cut off where it is too long', async () => {
  const socket = connect(server.port, '127.0.0.1')
  let answer = ''
  let closed = false
  socket.on('data', (chunk) => {
    answer += chunk.toString()
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    closed = true
  })
  socket.write(`POST ${whole} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n`)
  const chunk = `${(10_000).toString(16)}\r\n${'a'.repeat(10_000)}\r\n`
  for (let round = 0; round < 20; round++) socket.write(chunk)
  await until(() => expect(closed).toBe(true))
  expect(answer).toMatch(/^HTTP\/1\.1 400 /)
  expect(answer).toMatch(/\r\nConnection: close\r\n/i)
})

test('gzip bombs end at the largest size', async () => {
  const bomb = gzipSync(Buffer.alloc(50_000_000, '['))
  expect(bomb.length).toBeLessThan(maxInput)
  const headers = { 'content-encoding': 'gzip' }
  expect(await ask(server.url, { path: whole, body: bomb, headers })).toMatchObject(refused(/larger than/))
  const twice = gzipSync(gzipSync('{"input": 1}'))
  expect(await ask(server.url, { path: whole, body: twice, headers })).toMatchObject(refused(/not JSON/))
  expect(await ask(server.url, { path: whole, body: 'junk', headers })).toMatchObject(refused(/not gzip/))
})

test('depth bombs are refused, in bodies and in queries', async () => {
  for (const [open, close] of [
    ['[', ']'],
    ['{"a":', '}'],
  ] as const) {
    const depth = Math.floor(maxInput / (open.length + 2)) - 10
    const bomb = `${open.repeat(depth)}1${close.repeat(depth)}`
    const answer = await ask(server.url, { path: whole, body: `{"input":${bomb}}` })
    expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_parameter' } })
  }
  const query = encodeURIComponent('['.repeat(2_000) + ']'.repeat(2_000))
  expect((await ask(server.url, { path: `${whole}?input=${query}` })).status).toBe(200)
})

test.each([
  ['a path that escapes', '/v1/data/../../../../etc/passwd', 307],
  ['a path that escapes, encoded', '/v1/data/%2e%2e/%2e%2e/etc/passwd', 400],
  ['encoded slashes', '/v1/data/testmod%2f..%2f..%2fetc', 400],
  ['a NUL', '/v1/data/testmod/whole%00', 400],
  ['half an escape', '/v1/data/testmod/whole%', 400],
  ['names of prototypes', '/v1/data/__proto__/constructor', 400],
  ['a member of a prototype', '/v1/data/testmod/decision/toString', 200],
  ['members of prototypes', '/v1/data/testmod/decision/constructor/name', 200],
  ['a thousand segments', `/v1/data/testmod/decision${'/a'.repeat(1_000)}`, 200],
  ['a thousand slashes', `/v1/data${'/'.repeat(1_000)}testmod/decision`, 307],
  ['a thousand parameters', `/v1/data/testmod/decision?${'pretty&'.repeat(1_000)}`, 200],
] as const)('%s', async (_, path, status) => {
  const answer = await ask(server.url, { path, body: fine.body })
  expect(answer.status).toBe(status)
  // Never a value that a path did not name.
  if (status === 200 && !path.includes('?')) expect(answer.body).toEqual({})
  if (status === 307) expect(answer.headers.location).toMatch(/^\/[^/]/)
})

test('header floods are refused, and leave the others alone', async () => {
  const headers = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`x-${index}`, 'a'.repeat(50)]))
  expect((await ask(server.url, { ...fine, headers })).status).toBe(431)
})

test('whoever leaves amid a body costs nothing', async () => {
  for (let round = 0; round < 50; round++) {
    const socket = connect(server.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write(`POST ${whole} HTTP/1.1\r\nHost: a\r\nContent-Length: 90000\r\n\r\n{"input": "`)
    if (round % 2 === 0) socket.end()
    else await new Promise<void>((resolve) => socket.once('connect', () => resolve(void socket.destroy())))
    socket.once('data', () => socket.destroy())
  }
  expect((await ask(server.url, fine)).status).toBe(200)
  expect(server.output()).not.toMatch(/"level":"(?:error|fatal)"/)
})

test('rules that contradict each other, a thousand times, are told of in a few lines and to nobody else', async () => {
  const asked = { path: '/v1/data/testmod/conflict', body: '{"input": {"a": true, "b": true}}' }
  for (let round = 0; round < 200; round++) expect((await ask(server.url, asked)).status).toBe(500)
  const { bytes } = await ask(server.url, asked)
  expect(bytes.toString()).not.toContain('testmod.rego')
  expect(server.output().match(/testmod\.rego:\d+/g)!.length).toBeLessThan(100)
})

test('what took much work is not explained, remembered or not: OPA would have no bound for it', async () => {
  const asked = { path: '/v1/data/testmod/work', body: '{"input": {"n": 10}}' }
  expect(await ask(server.url, asked)).toMatchObject({ status: 200, body: { result: 10_000 } })
  for (let round = 0; round < 2; round++) {
    const answer = await ask(server.url, { ...asked, path: `${asked.path}?explain=full` })
    expect(answer).toMatchObject(refused(/too much to be explained/))
  }
})

test('explanations wait their turn, and a flood of them is refused', async () => {
  const asked = { ...fine, path: `${fine.path}?explain=full` }
  const answers = await Promise.all(Array.from({ length: 12 }, () => ask(server.url, asked)))
  const statuses = answers.map(({ status }) => status)
  expect(new Set(statuses)).toEqual(new Set([200, 503]))
  expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(5)
})

test('work that never ends is ended, while others are answered', async () => {
  const asked = { path: '/v1/data/testmod/work', body: '{"input": {"n": 1000000}}' }
  const [endless, others] = await Promise.all([
    Promise.all(Array.from({ length: 5 }, () => ask(server.url, asked))),
    Promise.all(Array.from({ length: 20 }, () => ask(server.url, fine))),
  ])
  for (const answer of endless)
    expect(answer).toMatchObject({ status: 500, body: { errors: [{ code: 'eval_cancel_error' }] } })
  for (const answer of others) expect(answer.status).toBe(200)
})
