import type { LookupAddress } from 'node:dns'
import { expect, onTestFinished, test } from 'vitest'
import { createMetrics } from '../../platform/metrics.ts'
import { capturedLogger } from '../support/captured-logger.ts'
import { startDnsServer } from '../support/dns-server.ts'
import { userUpdated } from '../support/event-factory.ts'
import { eachWithLedger, ledger, receiver } from '../support/fresh-ledger.ts'
import { testRelayConfig } from '../support/relay.ts'

eachWithLedger()

const config = { ...testRelayConfig, retrySchedule: [5, 5, 5, 5, 5, 5, 5] }
const address = (text: string): LookupAddress => ({ address: text, family: text.includes(':') ? 6 : 4 })
const failure = (code: string) => Object.assign(new Error(`getaddrinfo ${code}`), { code })
const attempts = async (count: number) => {
  await ledger.untilTrue(`SELECT count(*) >= ${count} FROM delivery_attempts`)
  return ledger.rows<{ status: number | null; error: string | null; address: string | null }>(
    'SELECT status, error, address FROM delivery_attempts ORDER BY id',
  )
}

test.each([
  ['a private address', ['10.0.0.1']],
  ['loopback in IPv6', ['::1']],
  ['the metadata service, mapped into IPv6', ['::ffff:169.254.169.254']],
  ['the metadata service behind NAT64', ['64:ff9b::a9fe:a9fe']],
  ['a private address inside 6to4', ['2002:0a00:0001::1']],
  ['a private address inside Teredo', ['2001:0:4136:e378:8000:63bf:f5ff:fffe']],
  ['a unique local address with a scope', ['fd00:ec2::254%eth0']],
  ['a site-local address', ['fec0::1']],
  ['this host', ['0.0.0.0']],
  ['several, none public', ['192.168.1.1', 'fe80::1', '100.100.100.200']],
])('a name that leads to %s is refused at connect', async (_name, addresses) => {
  await ledger.hook({ url: `http://inside.test:${receiver.port}/` })
  await ledger.relay({
    config: { ...config, allowedNetworks: [] },
    resolve: async () => addresses.map(address),
  })
  await ledger.record(userUpdated('u1'))
  const [attempt] = await attempts(1)
  expect(attempt).toMatchObject({ status: null, address: null })
  expect(attempt!.error).toMatch(/^The host inside\.test has no address that is allowed/)
  expect(receiver.received).toEqual([])
})

test.each([
  'http://127.0.0.1',
  'http://2130706433',
  'http://0x7f.1',
  'http://0177.0.0.1',
  'http://127.1',
  'http://[::ffff:127.0.0.1]',
  'http://[::1]',
  'http://１２７.0.0.1',
])('an address that is written as %s is refused at connect, though it was stored', async (origin) => {
  await ledger.hook({ url: `${origin}:${receiver.port}/` })
  await ledger.relay({ config: { ...config, allowedNetworks: [] } })
  await ledger.record(userUpdated('u1'))
  const [attempt] = await attempts(1)
  expect(attempt!.error).toMatch(/^The address .+ is not allowed: it is/)
  expect(receiver.received).toEqual([])
})

test('of a name with a public and a private address, only the public one is connected to', async () => {
  await ledger.hook({ url: `http://mixed.test:${receiver.port}/` })
  // 127.0.0.1 stands for the public one.
  await ledger.relay({
    config: { ...config, allowedNetworks: ['127.0.0.1'] },
    resolve: async () => [address('fd00::1'), address('10.1.2.3'), address('127.0.0.1')],
  })
  await ledger.record(userUpdated('u1'))
  expect(await attempts(1)).toEqual([{ status: 204, error: null, address: '127.0.0.1' }])
})

test('of a name that is an alias of an alias, the address at the end counts', async () => {
  const names = await startDnsServer({
    'hooks.customer.test': 'edge.cdn.test',
    'edge.cdn.test': 'database.internal.test',
    'database.internal.test': '10.0.0.7',
    'www.customer.test': 'outside.test',
    'outside.test': '127.0.0.1',
  })
  onTestFinished(names.close)
  await ledger.hook({ url: `http://hooks.customer.test:${receiver.port}/` })
  await ledger.hook({ url: `http://www.customer.test:${receiver.port}/` })
  // 127.0.0.1 stands for a public one.
  await ledger.relay({
    config: { ...config, allowedNetworks: ['127.0.0.1'], retrySchedule: [3_600_000] },
    resolve: names.resolve,
  })
  await ledger.record(userUpdated('u1'))
  expect((await attempts(2)).toSorted((left, right) => Number(left.status) - Number(right.status))).toEqual([
    {
      status: null,
      error: 'The host hooks.customer.test has no address that is allowed: it is a private address.',
      address: null,
    },
    { status: 204, error: null, address: '127.0.0.1' },
  ])
  expect(receiver.received).toHaveLength(1)
})

test('a name that turns private between attempts is refused, and taken again when it turns back', async () => {
  let turn = 0
  receiver.answerWith((_received, response) => {
    response.writeHead(500, { connection: 'close' }).end()
  })
  await ledger.hook({ url: `http://rebinding.test:${receiver.port}/` })
  await ledger.relay({
    config: { ...config, allowedNetworks: ['127.0.0.1'] },
    resolve: async () => [address(turn++ % 2 === 0 ? '127.0.0.1' : '127.0.0.2')],
  })
  await ledger.record(userUpdated('u1'))
  const seen = (await attempts(4)).slice(0, 4)
  expect(seen.map(({ status, address: reached }) => [status, reached])).toEqual([
    [500, '127.0.0.1'],
    [null, null],
    [500, '127.0.0.1'],
    [null, null],
  ])
})

test.each([
  ['does not exist', failure('ENOTFOUND'), 'The host name does not resolve.'],
  ['cannot be resolved just now', failure('EAI_AGAIN'), 'The host name could not be resolved just now.'],
])('a name that %s is tried again and disables nothing', async (_name, error, sentence) => {
  let calls = 0
  await ledger.hook({ url: `http://flaky.test:${receiver.port}/` })
  await ledger.relay({
    config,
    resolve: async () => {
      calls += 1
      if (calls < 3) throw error
      return [address('127.0.0.1')]
    },
  })
  await ledger.record(userUpdated('u1'))
  expect((await attempts(3)).map((attempt) => attempt.error)).toEqual([sentence, sentence, null])
  expect(await ledger.rows('SELECT enabled FROM hooks')).toEqual([{ enabled: true }])
})

test('a resolver that never answers ends with the deadline, and what it answers later starts nothing', async () => {
  const late: (() => void)[] = []
  await ledger.hook({ url: `http://silent.test:${receiver.port}/` })
  await ledger.relay({
    config: { ...config, attemptTimeoutMs: 200, leaseMs: 10_000, retrySchedule: [3_600_000] },
    resolve: () => new Promise((resolve) => late.push(() => resolve([address('127.0.0.1')]))),
  })
  await ledger.record(userUpdated('u1'))
  expect(await attempts(1)).toMatchObject([{ status: null, error: 'There was no answer within 200 ms.' }])
  for (const answer of late) answer()
  await ledger.hook({ url: receiver.url })
  await ledger.record(userUpdated('u2'))
  await receiver.until((received) => received.length === 1)
  expect(receiver.received.map(({ body }) => body.data['id'])).toEqual(['u2'])
})

test.each([301, 302, 303, 307, 308])('a %i to a metadata service is not followed, nor to itself', async (status) => {
  receiver.answerWith(({ body }, response) => {
    const location = body.data['id'] === 'u1' ? 'http://169.254.169.254/latest/meta-data/?token=secret' : receiver.url
    response.writeHead(status, { location }).end()
  })
  await ledger.hook({ url: receiver.url })
  await ledger.relay({ config: { ...config, retrySchedule: [3_600_000] } })
  await ledger.record(userUpdated('u1'), userUpdated('u2'))
  expect(await attempts(2)).toMatchObject([{ status }, { status }])
  expect(receiver.received).toHaveLength(2)
  expect(JSON.stringify(await ledger.rows('SELECT response_headers FROM delivery_attempts'))).not.toContain('secret')
})

test('signing keys, custom headers and payloads are in no log line and no metric', async () => {
  const { logger, lines } = capturedLogger('trace')
  const metrics = createMetrics()
  const hook = await ledger.hook({ url: receiver.url, headers: { authorization: 'Bearer abcdefgh12345678' } })
  await ledger.hook({ url: `http://nowhere.test:${receiver.port}/?token=in-the-query` })
  receiver.answerWith((_received, response) => void response.writeHead(500).end())
  await ledger.relay({
    logger,
    metrics,
    config: { ...config, retrySchedule: [5, 5, 5, 5, 5] },
    resolve: async () => {
      throw failure('ENOTFOUND')
    },
  })
  for (let index = 0; index < 6; index += 1) await ledger.record(userUpdated(`u${index}`, { name: 'Zoë Private' }))
  await ledger.untilTrue(`SELECT count(*) = 2 FROM hooks WHERE open_since IS NOT NULL`)
  const told = JSON.stringify(lines) + (await metrics.render()).text
  expect(told).toContain('only probes are sent')
  expect(told).toContain('surrogate_webhook_open_breakers 2')
  expect(told).not.toMatch(/abcdefgh12345678|Zoë Private|in-the-query/)
  expect(told).not.toContain(hook.signingKey)
})
