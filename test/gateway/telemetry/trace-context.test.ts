import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { protect } from '../../../gateway/express.ts'
import { capturedLogger } from '../../support/captured-logger.ts'
import { freePort } from '../../support/free-port.ts'
import { orders, sendRaw, startTestGateway } from '../../support/gateway.ts'
import { startOtlpCollector } from '../../support/otlp-collector.ts'
import { startTokenIssuer } from '../../support/token-issuer.ts'

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const traceparent = `00-${traceId}-00f067aa0ba902b7-01`

type Options = NonNullable<Parameters<typeof startTestGateway>[0]>

/** A gateway with both logs, whose lines are there once it has ended. */
const start = async ({ config = () => ({}), ...options }: Options = {}) => {
  const folder = await mkdtemp(join(tmpdir(), 'trace-context-'))
  cleanup.push(() => rm(folder, { recursive: true }))
  const files = { accessLog: { to: join(folder, 'access') }, decisionLog: { to: join(folder, 'decisions') } }
  const gateway = await startTestGateway({ ...options, config: (parts) => ({ ...files, ...config(parts) }) })
  const read = async (name: string) =>
    (await readFile(join(folder, name), 'utf8'))
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
  let closed = false
  const close = async () => {
    if (!closed) await gateway.close()
    closed = true
  }
  cleanup.push(close)
  const logs = async () => {
    await close()
    return { access: await read('access'), decisions: await read('decisions') }
  }
  return { gateway, logs }
}

describe('without telemetry', () => {
  test('a trace is passed on as it came, and its id is in the lines about the request', async () => {
    const { gateway, logs } = await start()
    const headers = { traceparent, tracestate: 'rojo=1, congo=2' }
    await gateway.call('/orders/1', {
      headers: {
        authorization: `Bearer ${await gateway.issuer.sign({ sid: 's-1', scope: 'read:orders' })}`,
        ...headers,
      },
    })
    await fetch(`${gateway.url}/orders/1`, { headers })
    expect(gateway.upstream.seen).toHaveLength(1)
    expect(gateway.upstream.seen[0]!.headers).toMatchObject(headers)
    const { access, decisions } = await logs()
    expect(access).toMatchObject([
      { trace_id: traceId, sid: 's-1', target: gateway.upstream.url, retries: 0 },
      { trace_id: traceId, status: 401 },
    ])
    expect(decisions).toMatchObject([{ trace_id: traceId }, { trace_id: traceId }])
    // The gateway has no span of its own to name.
    expect([...access, ...decisions].some((line) => 'span_id' in line)).toBe(false)
  })

  test('a later version of it is passed on as well', async () => {
    const { gateway } = await start()
    const later = `01-${traceId}-00f067aa0ba902b7-01-new`
    await gateway.call('/public/1', { headers: { traceparent: later } })
    expect(gateway.upstream.seen[0]!.headers).toMatchObject({ traceparent: later })
  })

  test('nothing is made up', async () => {
    const { gateway, logs } = await start()
    await gateway.call('/public/1')
    expect(gateway.upstream.seen[0]!.headers).not.toHaveProperty('traceparent')
    const { access, decisions } = await logs()
    expect([...access, ...decisions].some((line) => 'trace_id' in line)).toBe(false)
  })

  test.each([
    ['a trace that is not valid', [`traceparent: ${traceparent.toUpperCase()}`, 'tracestate: a=1'], []],
    ['two of them', [`traceparent: ${traceparent}`, `TraceParent: ${traceparent}`, 'tracestate: a=1'], []],
    ['a state without a trace', ['tracestate: a=1'], []],
    ['a state that is not valid', [`traceparent: ${traceparent}`, 'tracestate: A=1'], ['traceparent']],
    [
      'a state of too many parts',
      [`traceparent: ${traceparent}`, 'tracestate: a=1', 'tracestate: a=2'],
      ['traceparent'],
    ],
    [
      'a state of several fields',
      [`traceparent: ${traceparent}`, 'tracestate: a=1', 'tracestate: b=2'],
      ['traceparent', 'tracestate'],
    ],
    ['a trace for this hop only', [`traceparent: ${traceparent}`, 'connection: close, traceparent'], []],
  ])('%s', async (_name, lines, passed) => {
    const { gateway } = await start()
    await sendRaw(
      gateway.port,
      ['GET /public/1 HTTP/1.1', 'host: a', ...lines, 'connection: close', '', ''].join('\r\n'),
    )
    const { headers } = gateway.upstream.seen[0]!
    expect(['traceparent', 'tracestate'].filter((name) => name in headers)).toEqual(passed)
  })

  test('lines about failures name it too', async () => {
    const { logger, lines } = capturedLogger()
    const port = await freePort()
    const set = { revision: 'r1', entrypoints: ['surrogate/gateway/decision'], evaluate: () => 'perhaps' }
    const { gateway } = await start({
      logger,
      policies: { current: () => set },
      config: () => ({ upstreams: { orders: { url: `http://127.0.0.1:${port}` } } }),
    })
    await gateway.call('/public/1', { headers: { traceparent } })
    expect(lines).toContainEqual(expect.objectContaining({ msg: 'a policy gave no decision', trace_id: traceId }))
  })

  test('so do those about upstreams that fail', async () => {
    const { logger, lines } = capturedLogger()
    const port = await freePort()
    const { gateway } = await start({
      logger,
      config: () => ({ upstreams: { orders: { url: `http://127.0.0.1:${port}` } } }),
    })
    await gateway.call('/public/1', { headers: { traceparent } })
    expect(lines).toContainEqual(
      expect.objectContaining({
        msg: 'a request failed on our side',
        trace_id: traceId,
        requestId: expect.any(String),
      }),
    )
  })
})

test('behind a guard the application sees the trace that came, if it is valid', async () => {
  const issuer = await startTokenIssuer()
  cleanup.push(() => issuer.close())
  const guard = protect({ issuer: issuer.issuer, audience: orders, allowInsecure: ['http-issuer'] })
  cleanup.push(guard.close)
  const server = createServer((request, response) =>
    guard(request, response, () => response.end(JSON.stringify(request.headers))),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanup.push(() => server.close())
  const { port } = server.address() as AddressInfo
  const authorization = `Bearer ${await issuer.sign({ aud: orders })}`
  const seen = async (headers: Record<string, string>) => {
    const answer = await fetch(`http://127.0.0.1:${port}/`, {
      headers: { authorization, connection: 'close', ...headers },
    })
    expect(answer.status).toBe(200)
    return answer.json()
  }
  expect(await seen({ traceparent, tracestate: 'a=1' })).toMatchObject({ traceparent, tracestate: 'a=1' })
  const without = await seen({ traceparent: 'ff', tracestate: 'a=1' })
  expect(without).not.toHaveProperty('traceparent')
  expect(without).not.toHaveProperty('tracestate')
})

test('with telemetry the lines name the span of the request', async () => {
  const collector = await startOtlpCollector()
  cleanup.push(collector.close)
  const { gateway, logs } = await start({ config: () => ({ telemetry: { otlp: collector.url, sample: '100%' } }) })
  await gateway.call('/orders/1')
  const { access, decisions } = await logs()
  const server = collector.spans.find(({ kind }) => kind === 'SERVER')!
  const ids = { trace_id: server.traceId, span_id: server.spanId }
  expect(access).toMatchObject([ids])
  expect(decisions).toMatchObject([ids])
})

test('requests that are not recorded have a trace in the log and upstream, and no span', async () => {
  const collector = await startOtlpCollector()
  cleanup.push(collector.close)
  const { gateway, logs } = await start({ config: () => ({ telemetry: { otlp: collector.url, sample: '0%' } }) })
  await gateway.call('/orders/1')
  const { access } = await logs()
  const { trace_id, span_id } = access[0]
  expect(trace_id).toMatch(/^[0-9a-f]{32}$/)
  expect(gateway.upstream.seen[0]!.headers['traceparent']).toBe(`00-${trace_id}-${span_id}-00`)
  expect(collector.spans).toEqual([])
})
