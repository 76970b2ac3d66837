import { afterEach, describe, expect, test } from 'vitest'
import { createTraces } from '../../../gateway/telemetry/traces.ts'
import { randomHex } from '../../../platform/ids.ts'
import { silentLogger } from '../../../platform/logger.ts'
import { createMetrics } from '../../../platform/metrics.ts'
import { connectExtAuthz } from '../../support/ext-authz.ts'
import { freePort } from '../../support/free-port.ts'
import { sendRaw, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type OtlpCollector, type ReceivedSpan, startOtlpCollector } from '../../support/otlp-collector.ts'
import { until } from '../../support/until.ts'
import { openWebSocket, startWebSocketApi } from '../../support/websocket-api.ts'

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const parentId = '00f067aa0ba902b7'

type Config = NonNullable<Parameters<typeof startTestGateway>[0]>['config']

/** A gateway that sends to a collector. `spans`: what came once it has ended. */
const start = async (settings: object = {}, config: Config = () => ({})) => {
  const collector = await startOtlpCollector()
  cleanup.push(collector.close)
  const gateway = await startTestGateway({
    config: (parts) => ({ telemetry: { otlp: collector.url, sample: '100%', ...settings }, ...config(parts) }),
  })
  let closed = false
  const close = async () => {
    if (!closed) await gateway.close()
    closed = true
  }
  cleanup.push(close)
  const spans = async () => {
    await close()
    return collector.spans
  }
  return { gateway, collector, spans }
}

const named = (spans: readonly ReceivedSpan[], kind: ReceivedSpan['kind']) => spans.filter((span) => span.kind === kind)
const upstreamTraceparent = ({ upstream }: TestGateway, index = 0) => upstream.seen[index]?.headers['traceparent']

describe('a request', () => {
  test('is one server span with verify, decide and upstream within it', async () => {
    const { gateway, spans, collector } = await start({ resource: { 'deployment.environment.name': 'test' } })
    const answer = await gateway.call('/orders/42?code=s3cret-query', {
      headers: {
        authorization: `Bearer ${await gateway.issuer.sign({ sub: 'person-7', scope: 'read:orders' })}`,
        cookie: 'session=s3cret-cookie',
        'user-agent': 'curl/9',
        traceparent: `00-${traceId}-${parentId}-01`,
        tracestate: 'vendor=opaque',
      },
    })
    expect(answer.status).toBe(200)
    const all = await spans()
    const [server] = named(all, 'SERVER')
    const [upstream] = named(all, 'CLIENT')
    const [verify, decide] = named(all, 'INTERNAL')
    expect(all).toHaveLength(4)
    expect(server).toMatchObject({
      ...{ name: 'GET /orders/**', traceId, parentSpanId: parentId, traceState: 'vendor=opaque', failed: false },
      attributes: {
        'http.request.method': 'GET',
        'url.scheme': 'http',
        'url.path': '/orders/42',
        'server.address': '127.0.0.1',
        'server.port': gateway.port,
        'http.route': '/orders/**',
        'http.response.status_code': 200,
        'user_agent.original': 'curl/9',
        'network.protocol.version': '1.1',
        'surrogate.request.id': answer.headers.get('x-request-id'),
        'surrogate.route': 'orders-read',
        'surrogate.target': gateway.upstream.url,
        'surrogate.retries': 0,
      },
      resource: {
        'service.name': 'surrogate-gateway',
        'service.version': expect.stringMatching(/^\d+\.\d+\.\d+/),
        'service.instance.id': expect.any(String),
        'deployment.environment.name': 'test',
      },
    })
    expect(verify).toMatchObject({ name: 'verify', parentSpanId: server!.spanId, failed: false, attributes: {} })
    expect(decide).toMatchObject({
      ...{ name: 'decide', parentSpanId: server!.spanId, failed: false },
      attributes: { 'surrogate.entrypoint': 'surrogate/gateway/decision', 'surrogate.decision': 'allow' },
    })
    expect(upstream).toMatchObject({
      ...{ name: 'GET', parentSpanId: server!.spanId, failed: false },
      attributes: {
        'http.request.method': 'GET',
        'server.address': '127.0.0.1',
        'server.port': gateway.upstream.port,
        'http.response.status_code': 200,
        'surrogate.upstream': 'orders',
      },
    })
    expect(new Set(all.map((span) => span.spanId)).size).toBe(4)
    // One after the other, and each within the request.
    const times = [server!.startedAt, verify!.startedAt, verify!.endedAt, decide!.startedAt, decide!.endedAt]
    times.push(upstream!.startedAt, upstream!.endedAt, server!.endedAt)
    expect(times).toEqual(times.toSorted((one, other) => one - other))
    expect(Math.abs(server!.startedAt - Date.now())).toBeLessThan(600_000)

    expect(upstreamTraceparent(gateway)).toBe(`00-${traceId}-${upstream!.spanId}-01`)
    expect(gateway.upstream.seen[0]?.headers['tracestate']).toBe('vendor=opaque')
    expect(collector.raw).not.toMatch(/s3cret|eyJ|person-7/)
  })

  test('without a caller’s trace begins one', async () => {
    const { gateway, spans } = await start()
    await gateway.call('/orders/1')
    await gateway.call('/orders/2')
    const all = await spans()
    const servers = named(all, 'SERVER')
    expect(servers.map((span) => span.parentSpanId)).toEqual(['', ''])
    expect(new Set(all.map((span) => span.traceId)).size).toBe(2)
    expect(upstreamTraceparent(gateway)).toBe(`00-${servers[0]!.traceId}-${named(all, 'CLIENT')[0]!.spanId}-01`)
  })

  test('that is refused says what by, and has no span for what it did not reach', async () => {
    const { gateway, spans } = await start()
    await gateway.call('/nowhere')
    await fetch(`${gateway.url}/orders/1`)
    await gateway.call('/orders/1', { scope: '' })
    await gateway.call('/orders/1', { headers: { authorization: 'Bearer x.y.z' } })
    await sendRaw(gateway.port, 'GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\nconnection: close\r\n\r\n')
    const all = await spans()
    const servers = named(all, 'SERVER')
    expect(
      servers.map(({ name, failed, attributes }) => [name, failed, attributes['http.response.status_code']]),
    ).toEqual([
      ['GET', false, 404],
      ['GET /orders/**', false, 401],
      ['GET /orders/**', false, 401],
      ['GET /orders/**', false, 401],
      ['GET', false, 400],
    ])
    expect(servers.map(({ attributes }) => attributes['surrogate.error'])).toEqual([
      'not_found',
      'token_missing',
      'insufficient_scope',
      'invalid_token',
      'invalid_request',
    ])
    const parts = (server: ReceivedSpan) => all.filter(({ parentSpanId }) => parentSpanId === server.spanId)
    expect(servers.map((server) => parts(server).map(({ name }) => name))).toEqual([
      [],
      ['verify'],
      ['verify', 'decide'],
      ['verify'],
      [],
    ])
    expect(parts(servers[2]!)[1]!.attributes).toMatchObject({
      'surrogate.decision': 'deny',
      'surrogate.reason': 'insufficient_scope',
    })
    expect(parts(servers[1]!)[0]!.attributes).toEqual({ 'surrogate.error': 'token_missing' })
  })

  test('whose upstream fails has failed, and so has the span upstream', async () => {
    const port = await freePort()
    const { gateway, spans } = await start({}, () => ({
      upstreams: { orders: { url: `http://127.0.0.1:${port}` } },
    }))
    expect((await gateway.call('/orders/1')).status).toBe(502)
    const all = await spans()
    expect(named(all, 'SERVER')).toMatchObject([{ failed: true, attributes: { 'http.response.status_code': 502 } }])
    const [upstream] = named(all, 'CLIENT')
    expect(upstream).toMatchObject({ failed: true, attributes: { 'error.type': expect.any(String) } })
    expect(upstream!.attributes).not.toHaveProperty('http.response.status_code')
  })

  test('that is sent again has a span for each attempt, whose id the target of it gets', async () => {
    const { gateway, spans } = await start({}, ({ upstream }) => ({
      upstreams: { orders: { url: upstream.url, retries: { attempts: 2, on: [503] } } },
    }))
    gateway.upstream.answer = (_request, response) =>
      void response.writeHead(gateway.upstream.seen.length === 1 ? 503 : 200).end()
    expect((await gateway.call('/orders/1')).status).toBe(200)
    const all = await spans()
    const attempts = named(all, 'CLIENT')
    expect(attempts).toMatchObject([
      { failed: true, attributes: { 'http.response.status_code': 503, 'error.type': '503' } },
      { failed: false, attributes: { 'http.response.status_code': 200, 'http.request.resend_count': 1 } },
    ])
    expect(attempts[0]!.attributes).not.toHaveProperty('http.request.resend_count')
    expect(gateway.upstream.seen.map(({ headers }) => headers['traceparent'])).toEqual(
      attempts.map((attempt) => `00-${attempt.traceId}-${attempt.spanId}-01`),
    )
    expect(named(all, 'SERVER')[0]!.attributes['surrogate.retries']).toBe(1)
  })

  test('whose method somebody made up has none of it in its name', async () => {
    const { gateway, spans } = await start()
    await fetch(`${gateway.url}/public/1`, { method: 'PROPFIND' })
    expect(named(await spans(), 'SERVER')).toMatchObject([
      {
        name: 'HTTP /public/**',
        attributes: { 'http.request.method': '_OTHER', 'http.request.method_original': 'PROPFIND' },
      },
    ])
  })

  test('has attributes of bounded length', async () => {
    const { gateway, spans } = await start()
    await fetch(`${gateway.url}/public/${'x'.repeat(4_000)}`, { headers: { 'user-agent': 'y'.repeat(4_000) } })
    const [server] = named(await spans(), 'SERVER')
    expect(server!.attributes['url.path']).toHaveLength(1_024)
    expect(server!.attributes['user_agent.original']).toHaveLength(1_024)
  })
})

test('a WebSocket is a span until it ends, and its handshake one upstream', async () => {
  const api = await startWebSocketApi()
  cleanup.push(() => api.close())
  const { gateway, collector } = await start({}, () => ({
    upstreams: { api: { url: api.url } },
    routes: [{ id: 'live', path: '/live/**', auth: 'none', upstream: 'api', websocket: true }],
  }))
  const { socket } = await openWebSocket(`${gateway.url}/live/1`)
  socket.close()
  const all = await until(() => {
    expect(named(collector.spans, 'SERVER')).toHaveLength(1)
    return collector.spans
  })
  const [server] = named(all, 'SERVER')
  const [upstream] = named(all, 'CLIENT')
  expect(server).toMatchObject({ name: 'GET /live/**', attributes: { 'http.response.status_code': 101 } })
  expect(upstream).toMatchObject({
    ...{ parentSpanId: server!.spanId, failed: false },
    attributes: { 'http.response.status_code': 101 },
  })
  expect(upstream!.endedAt).toBeLessThanOrEqual(server!.endedAt)
  expect(api.handshakes[0]!.headers['traceparent']).toBe(`00-${server!.traceId}-${upstream!.spanId}-01`)
})

test('a decision for another proxy is a span of its trace, without one upstream', async () => {
  const { gateway, spans } = await start({ sample: '0%' }, () => ({
    trustedProxies: ['127.0.0.1'],
    forwardAuth: { dialect: 'traefik' },
  }))
  const { status } = await gateway.call('/.surrogate/auth', {
    headers: {
      authorization: `Bearer ${await gateway.issuer.sign({ scope: 'read:orders' })}`,
      'x-forwarded-method': 'GET',
      'x-forwarded-uri': '/orders/7',
      'x-forwarded-host': 'api.test',
      'x-forwarded-proto': 'https',
      traceparent: `00-${traceId}-${parentId}-01`,
    },
  })
  expect(status).toBe(200)
  const all = await spans()
  expect(named(all, 'SERVER')).toMatchObject([
    {
      ...{ traceId, parentSpanId: parentId },
      attributes: { 'server.address': 'api.test', 'url.scheme': 'https', 'url.path': '/orders/7' },
    },
  ])
  expect(named(all, 'CLIENT')).toEqual([])
})

test('a decision for Envoy is one as well, recorded by our own ratio', async () => {
  const { gateway, spans } = await start({}, () => ({ trustedProxies: ['127.0.0.1'], extAuthz: { port: 0 } }))
  const envoy = connectExtAuthz(gateway.extAuthzPort)
  cleanup.push(envoy.close)
  const headers = { traceparent: `00-${traceId}-${parentId}-00` }
  expect(await envoy.check({ path: '/public/7?code=s3cret', headers })).toMatchObject({ allowed: true })
  const all = await spans()
  const [server] = named(all, 'SERVER')
  expect(server).toMatchObject({
    ...{ name: 'GET /public/**', traceId, parentSpanId: parentId, failed: false },
    attributes: { 'server.address': 'api.test', 'url.path': '/public/7', 'http.response.status_code': 200 },
  })
  expect(all.filter(({ parentSpanId }) => parentSpanId === server!.spanId).map(({ name }) => name)).toEqual([
    'verify',
    'decide',
  ])
})

describe('which requests are recorded', () => {
  const send = (gateway: TestGateway, flags: string) =>
    gateway.call('/public/1', { headers: { traceparent: `00-${traceId}-${parentId}-${flags}` } })

  test('is not for a client to say', async () => {
    const { gateway, spans } = await start({ sample: '0%' })
    for (let count = 0; count < 20; count++) await send(gateway, '01')
    expect(await spans()).toEqual([])
    // The trace is its own all the same, and what comes after the gateway knows that it is not recorded.
    expect(upstreamTraceparent(gateway)).toMatch(new RegExp(`^00-${traceId}-(?!${parentId})[0-9a-f]{16}-00$`))
  })

  test('nor by the choice of an id', async () => {
    // Half of all requests: of so many with one id neither all nor none.
    const { gateway, spans } = await start({ sample: '50%' })
    for (let count = 0; count < 100; count++) await send(gateway, '01')
    const recorded = named(await spans(), 'SERVER').length
    expect(recorded).toBeGreaterThan(10)
    expect(recorded).toBeLessThan(90)
  })

  test('is for a trusted proxy to say, both ways', async () => {
    const none = await start({ sample: '0%' }, () => ({ trustedProxies: ['127.0.0.1'] }))
    await send(none.gateway, '01')
    expect(named(await none.spans(), 'SERVER')).toMatchObject([{ traceId, parentSpanId: parentId }])
    const all = await start({ sample: '100%' }, () => ({ trustedProxies: ['127.0.0.1'] }))
    await send(all.gateway, '00')
    expect(await all.spans()).toEqual([])
  })

  test('is otherwise decided by the id of the trace, the same everywhere', async () => {
    const traces = (sample: number) =>
      createTraces({
        settings: { otlp: 'http://127.0.0.1:9', sample, headers: {}, resource: {} },
        logger: silentLogger,
        metrics: createMetrics(),
      })
    const [one, other, fewer] = [traces(0.2), traces(0.2), traces(0.1)]
    const ids = Array.from({ length: 20_000 }, () => randomHex(16))
    const sampled = ids.filter((id) => one.samples(id))
    expect(sampled).toEqual(ids.filter((id) => other.samples(id)))
    expect(sampled.length / ids.length).toBeCloseTo(0.2, 1)
    // Whoever records fewer records some of the same.
    expect(ids.filter((id) => fewer.samples(id)).every((id) => one.samples(id))).toBe(true)
    await Promise.all([one, other, fewer].map((each) => each.close()))
  })
})

test('an application’s own OpenTelemetry is not touched', async () => {
  const registered = () => {
    const key = Object.getOwnPropertySymbols(globalThis).find((symbol) => /opentelemetry/.test(String(symbol)))
    return key && Object.keys((globalThis as Record<symbol, unknown>)[key] as object)
  }
  const before = registered()
  const { gateway, spans } = await start()
  await gateway.call('/orders/1')
  expect(await spans()).toHaveLength(4)
  expect(registered()).toEqual(before)
})

test('an invalid trace of a caller is replaced', async () => {
  const { gateway, spans } = await start()
  await gateway.call('/public/1', { headers: { traceparent: `00-${traceId}-${parentId}-01-x`, tracestate: 'a=1' } })
  const [server] = named(await spans(), 'SERVER')
  expect(server).toMatchObject({ parentSpanId: '', traceState: '' })
  expect(server!.traceId).not.toBe(traceId)
  const { headers } = gateway.upstream.seen[0]!
  expect(headers['traceparent']).toContain(server!.traceId)
  expect(headers).not.toHaveProperty('tracestate')
})

test('metrics go to the collector as they are at /metrics', async () => {
  const { gateway, spans, collector } = await start({ headers: { authorization: 'Bearer c0llector' } })
  await gateway.call('/orders/1')
  await gateway.call('/orders/2')
  await spans()
  const metric = (name: string) => collector.metrics.find((one) => one.name === name)
  expect(metric('surrogate_gateway_requests_total')).toMatchObject({
    kind: 'sum',
    points: [{ attributes: { route: 'orders-read', status: '200' }, value: 2 }],
    resource: { 'service.name': 'surrogate-gateway' },
  })
  const seconds = metric('surrogate_gateway_request_seconds')
  expect(seconds).toMatchObject({
    kind: 'histogram',
    unit: 's',
    points: [{ attributes: { route: 'orders-read' }, count: 2 }],
  })
  const [{ bucketCounts = [], bounds = [] }] = seconds!.points as [ReceivedPoint]
  expect(bounds[0]).toBe(0.001)
  expect(bucketCounts).toHaveLength(bounds.length + 1)
  expect(bucketCounts.reduce((sum, count) => sum + count, 0)).toBe(2)
  expect(metric('surrogate_gateway_verified_tokens')).toMatchObject({ kind: 'gauge' })
  expect(collector.requests.map(({ path }) => path)).toEqual(expect.arrayContaining(['/v1/traces', '/v1/metrics']))
  expect(new Set(collector.requests.map(({ headers }) => headers.authorization))).toEqual(new Set(['Bearer c0llector']))
})

type ReceivedPoint = OtlpCollector['metrics'][number]['points'][number]
