import { mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { createDecisionLog } from '../../../gateway/logs/decision-log.ts'
import { newRequestContext, type RequestContext } from '../../../gateway/request/request-context.ts'
import { silentLogger } from '../../../platform/logger.ts'
import { createMetrics } from '../../../platform/metrics.ts'
import { sendRaw, startTestGateway } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

const cleanup: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const start = async (settings: object = {}) => {
  const folder = await mkdtemp(join(tmpdir(), 'decision-log-'))
  cleanup.push(() => rm(folder, { recursive: true }))
  const file = join(folder, 'logs', 'decisions.jsonl')
  const gateway = await startTestGateway({ config: () => ({ decisionLog: { to: file, ...settings } }) })
  cleanup.push(() => gateway.close())
  const lines = async (count: number) => {
    const events: Record<string, unknown>[] = []
    await until(async () => {
      const text = await readFile(file, 'utf8')
      events.splice(
        0,
        events.length,
        ...text
          .split('\n')
          .filter(Boolean)
          .map((line) => JSON.parse(line)),
      )
      expect(events).toHaveLength(count)
    })
    return events
  }
  return { gateway, lines, file }
}

test('one line a request, in the shape of OPA, whatever ended it', async () => {
  const { gateway, lines } = await start({ labels: { zone: 'b' } })
  await gateway.call('/orders/42')
  await gateway.call('/orders', { scope: '' })
  await fetch(`${gateway.url}/orders`)
  await fetch(`${gateway.url}/nowhere`)
  const events = await lines(4)
  expect(events[0]).toEqual({
    labels: {
      zone: 'b',
      app: 'surrogate-gateway',
      config: expect.stringMatching(/^[0-9a-f]{12}$/),
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    },
    bundles: { policies: { revision: expect.any(String) } },
    decision_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
    path: 'surrogate/gateway/decision',
    input: expect.objectContaining({ version: 1, subject: { id: 'u1' } }),
    result: { allow: true, headers: {} },
    requested_by: '127.0.0.1',
    http: { status: 200, route: 'orders-read' },
    metrics: { timer_server_handler_ns: expect.any(Number) },
  })
  expect(events.map(({ http, result }) => [http, result])).toMatchObject([
    [{ status: 200 }, { allow: true }],
    [
      { status: 401, route: 'orders-read' },
      { allow: false, reason: 'insufficient_scope' },
    ],
    [
      { status: 401, route: 'orders-read' },
      { allow: false, reason: 'token_missing' },
    ],
    [{ status: 404 }, { allow: false, reason: 'not_found' }],
  ])
})

test('tokens never stand in it, and masked members are named but gone', async () => {
  const { gateway, lines } = await start({
    mask: [
      '/input/token/claims/email',
      '/input/subject',
      '/input/token/nothing',
      { path: '/input/request/clientIp', value: 'somewhere' },
      '/input/request/segments/0',
    ],
  })
  const token = await gateway.issuer.sign({ scope: 'read:orders', email: 'a@b.test' })
  for (let round = 0; round < 2; round++) expect((await gateway.call('/orders', { token })).status).toBe(200)
  for (const event of await lines(2)) {
    const text = JSON.stringify(event)
    expect(text).not.toContain('a@b.test')
    expect(text).not.toContain(token.split('.')[2])
    expect(event).toMatchObject({
      erased: ['/input/token/claims/email', '/input/subject', '/input/request/segments/0'],
      masked: ['/input/request/clientIp'],
      input: { request: { clientIp: 'somewhere', segments: [null] } },
    })
    expect(event['input']).not.toHaveProperty('subject')
    expect(event['input']).toHaveProperty('token.claims.sub', 'u1')
  }
})

test.each(['/input/request/clientIp', { path: '/input/request', value: {} }])(
  'the address of a client stands nowhere when it is masked (%j)',
  async (mask) => {
    const { gateway, lines } = await start({ mask: [mask] })
    await gateway.call('/orders')
    await gateway.call('/nowhere')
    for (const event of await lines(2)) {
      expect(event).not.toHaveProperty('requested_by')
      expect(event).not.toHaveProperty('input.request.clientIp')
    }
  },
)

test('a claim nested too deep to be written costs the line its input, not the line', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'decision-log-'))
  cleanup.push(() => rm(folder, { recursive: true }))
  const to = join(folder, 'decisions.jsonl')
  const settings = { to, mask: ['/http/status'], body: 'erase' as const, labels: {}, bufferSize: 65_536 }
  const log = createDecisionLog({
    settings,
    labels: {},
    revision: () => 'r1',
    logger: silentLogger,
    metrics: createMetrics(),
  })
  const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)
  const context = newRequestContext(
    { url: '/' } as RequestContext['incoming'],
    { headersSent: false } as RequestContext['response'],
  )
  const input = {
    request: { query: {}, headers: {} },
    token: { claims: { deep } },
  } as unknown as RequestContext['input']
  log.write({ ...context, id: 'deep', input })
  log.write({ ...context, id: 'next' })
  await log.close()
  const lines = (await readFile(to, 'utf8')).trim().split('\n')
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    {
      decision_id: 'deep',
      result: { allow: false, reason: 'client_gone' },
      unwritable: ['input'],
      erased: ['/http/status'],
    },
    { decision_id: 'next', input: expect.anything() },
  ])
})

test('credentials in a query are replaced without being asked for, and named', async () => {
  const { gateway, lines } = await start({ mask: [{ path: '/input/request/query/page', value: ['x'] }] })
  const jwt = await gateway.issuer.sign()
  await gateway.call(`/orders?refresh_token=s3cret&secret%2F~=s3cret&next=${jwt}&page=2&expand=items`)
  const [event] = await lines(1)
  expect(JSON.stringify(event)).not.toMatch(/s3cret|eyJ/)
  expect(event).toMatchObject({
    input: {
      request: {
        query: {
          refresh_token: ['[redacted]'],
          'secret/~': ['[redacted]'],
          next: ['[redacted]'],
          page: ['x'],
          expand: ['items'],
        },
      },
    },
    masked: [
      '/input/request/query/refresh_token',
      '/input/request/query/secret~1~0',
      '/input/request/query/next',
      '/input/request/query/page',
    ],
  })
})

test('nor do they stand there as the name of a parameter, within another value, or in a header that policies see', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'decision-log-'))
  cleanup.push(() => rm(folder, { recursive: true }))
  const to = join(folder, 'decisions.jsonl')
  const gateway = await startTestGateway({
    config: () => ({
      decisionLog: { to },
      routes: [{ id: 'all', path: '/orders', auth: 'none', upstream: 'orders', policyHeaders: ['referer', 'accept'] }],
    }),
  })
  const jwt = await gateway.issuer.sign()
  const next = encodeURIComponent('https://app.test/cb?code=s3cret&x=1')
  await gateway.call(
    `/orders?${jwt}&q=Bearer+${jwt}&next=${next}&p=pat_0123456789abcdef0123&a=1;refresh_token=s3cret&eyJ=1`,
    {
      headers: { referer: 'https://app.test/?session_id=s3cret', accept: 'text/plain;charset=utf-8' },
    },
  )
  await gateway.close()
  const event = JSON.parse(await readFile(to, 'utf8'))
  expect(JSON.stringify(event)).not.toMatch(/s3cret|eyJ[^"]|pat_/)
  expect(event.input.request).toMatchObject({
    query: {
      '[redacted]': ['[redacted]'],
      q: ['[redacted]'],
      next: ['[redacted]'],
      p: ['[redacted]'],
      a: ['[redacted]'],
      eyJ: ['1'],
    },
    headers: { referer: ['[redacted]'], accept: ['text/plain;charset=utf-8'] },
  })
  expect(event.masked).toContain('/input/request/headers/referer')
})

test('what went wrong in a policy stands beside the result, as in the events of OPA', async () => {
  const set = { revision: 'r1', entrypoints: ['surrogate/gateway/decision'], evaluate: () => 'perhaps' }
  const folder = await mkdtemp(join(tmpdir(), 'decision-log-'))
  cleanup.push(() => rm(folder, { recursive: true }))
  const to = join(folder, 'decisions.jsonl')
  const gateway = await startTestGateway({ policies: { current: () => set }, config: () => ({ decisionLog: { to } }) })
  await gateway.call('/orders')
  await gateway.close()
  expect(JSON.parse(await readFile(to, 'utf8'))).toMatchObject({
    result: { allow: false, reason: 'policy_error' },
    error: { message: expect.any(String) },
  })
})

test('a file that was moved away is opened anew', async () => {
  const { gateway, lines, file } = await start()
  await gateway.call('/orders/1')
  await lines(1)
  await rename(file, `${file}.1`)
  gateway.reopenLogs()
  await until(async () => expect(await readFile(file, 'utf8')).toBe(''))
  await gateway.call('/orders/2')
  expect(await lines(1)).toMatchObject([{ input: { request: { path: '/orders/2' } } }])
  expect((await readFile(`${file}.1`, 'utf8')).split('\n')).toHaveLength(2)
  expect((await stat(file)).mode & 0o777).toBe(0o640)
})

test('the access log tells who asked for what, without query, token or header', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'access-log-'))
  cleanup.push(() => rm(folder, { recursive: true }))
  const to = join(folder, 'access.jsonl')
  const gateway = await startTestGateway({ config: () => ({ accessLog: { to } }) })
  const token = await gateway.issuer.sign({ scope: 'read:orders', client_id: 'c1', act: { sub: 'agent' } })
  const headers = { authorization: `Bearer ${token}`, 'user-agent': 'u'.repeat(1_000) }
  await gateway.call('/orders/42?key=s3cret', { headers })
  await fetch(`${gateway.url}/nowhere`)
  await gateway.close()
  const text = await readFile(to, 'utf8')
  expect(text).not.toMatch(/s3cret|eyJ/)
  const [first, second] = text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
  expect(first).toEqual({
    time: expect.any(String),
    request_id: expect.any(String),
    client_ip: '127.0.0.1',
    method: 'GET',
    host: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
    path: '/orders/42',
    protocol: 'HTTP/1.1',
    status: 200,
    duration_ms: expect.any(Number),
    route: 'orders-read',
    target: gateway.upstream.url,
    retries: 0,
    sub: 'u1',
    act: 'agent',
    client_id: 'c1',
    user_agent: 'u'.repeat(256),
  })
  expect(second).toMatchObject({ path: '/nowhere', status: 404, code: 'not_found' })
})

test('requests that cannot be read stand in the access log, without what is not known, and are counted', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'access-log-'))
  cleanup.push(() => rm(folder, { recursive: true }))
  const to = join(folder, 'access.jsonl')
  const gateway = await startTestGateway({ config: () => ({ accessLog: { to }, limits: { headersTimeout: '100ms' } }) })
  const answers = [
    await sendRaw(gateway.port, 'nonsense\r\n\r\n'),
    await sendRaw(gateway.port, 'CONNECT other.test:443 HTTP/1.1\r\nhost: other.test:443\r\n\r\n'),
    await sendRaw(gateway.port, `GET / HTTP/1.1\r\nhost: a\r\nx: ${'x'.repeat(200_000)}\r\n\r\n`),
    await sendRaw(gateway.port, 'GET / HTTP/1.1\r\nhost: '),
  ]
  // Who only opens a connection asks for nothing.
  await sendRaw(gateway.port, '')
  // This one is told of as the request that it was.
  await sendRaw(gateway.port, 'POST /public HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\ncontent-length: x\r\n\r\n')
  const counts = (await gateway.metrics.render()).text
  await gateway.close()
  const entries = (await readFile(to, 'utf8'))
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
  const ids = answers.map((answer) => /x-request-id: (\S+)/.exec(answer)?.[1])
  const unread = (index: number, status: number, code: string) => ({
    time: expect.any(String),
    request_id: ids[index],
    client_ip: '127.0.0.1',
    status,
    code,
  })
  expect(entries.slice(0, 4)).toEqual([
    unread(0, 400, 'invalid_request'),
    unread(1, 400, 'invalid_request'),
    unread(2, 431, 'header_fields_too_large'),
    unread(3, 408, 'request_timeout'),
  ])
  expect(entries.slice(4)).toMatchObject([{ status: 400, code: 'invalid_request' }])
  expect(counts).toContain('surrogate_gateway_requests_total{route="",status="431"} 1')
  expect(counts).toContain('surrogate_gateway_requests_total{route="",status="408"} 1')
})
