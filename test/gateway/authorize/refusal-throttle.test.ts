import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { createRefusalThrottle } from '../../../gateway/authorize/refusal-throttle.ts'
import { createPipeline } from '../../../gateway/pipeline.ts'
import type { ProblemCode } from '../../../gateway/refusals/problems.ts'
import {
  answered,
  newRequestContext,
  type RequestContext,
  type Stage,
} from '../../../gateway/request/request-context.ts'
import { silentLogger } from '../../../platform/logger.ts'
import { createMetrics } from '../../../platform/metrics.ts'
import { sendRaw, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { newSigningKey } from '../../support/token-issuer.ts'
import { until } from '../../support/until.ts'

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const start = async (limits: Record<string, unknown> = {}): Promise<TestGateway> => {
  const gateway = await startTestGateway({
    config: ({ issuer }) => ({
      limits,
      trustedProxies: ['127.0.0.1'],
      issuers: [{ issuer: issuer.issuer }],
    }),
  })
  cleanup.push(() => gateway.close())
  return gateway
}

const unknownKeyToken = async (gateway: TestGateway) =>
  gateway.issuer.sign({ scope: 'read:orders' }, {}, await newSigningKey())

/** How many answers had to wait so far. */
const heldTotal = async ({ metrics }: Pick<TestGateway, 'metrics'>): Promise<number> =>
  Number(/^surrogate_gateway_refusals_held_total (\d+)$/m.exec((await metrics.render()).text)?.[1])

describe('a client that sends tokens of unknown keys', () => {
  test('waits for answers beyond its share, and gets them whole; good requests of its address do not', async () => {
    const gateway = await start({ refusedTokens: 10 })
    const token = await unknownKeyToken(gateway)
    const ask = () => gateway.call('/orders/1', { token })
    const flood = Array.from({ length: 40 }, ask)
    await until(async () => expect(await heldTotal(gateway)).toBeGreaterThan(0))
    const before = await heldTotal(gateway)
    const good = await Promise.all(Array.from({ length: 20 }, () => gateway.call('/orders/1')))
    expect(good.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200))

    for (const answer of await Promise.all(flood)) {
      // 401 is for those that the issuer was asked about.
      expect([401, 503]).toContain(answer.status)
      expect(['invalid_token', 'keys_unavailable']).toContain(((await answer.json()) as { code: string }).code)
    }
    // Five in a row are answered at once; what is refilled meanwhile depends on how fast the rest came.
    expect(before).toBeLessThanOrEqual(35)
    expect(await heldTotal(gateway)).toBeGreaterThanOrEqual(before)
    expect((await gateway.metrics.render()).text).toContain('surrogate_gateway_refusals_held 0')
  })

  test('counts as refused, in metrics and logs, however late it is told', async () => {
    const gateway = await start({ refusedTokens: 1 })
    const token = await unknownKeyToken(gateway)
    await Promise.all(Array.from({ length: 5 }, () => gateway.call('/orders/1', { token })))
    await until(async () => {
      const counts = [
        ...(await gateway.metrics.render()).text.matchAll(/requests_total\{.*status="(?:401|503)"\} (\d+)/g),
      ]
      expect(counts.reduce((sum, [, count]) => sum + Number(count), 0)).toBe(5)
    })
  })

  test('that leaves while its answer waits is forgotten', async () => {
    const gateway = await start({ refusedTokens: 1 })
    const token = await unknownKeyToken(gateway)
    const sockets = Array.from({ length: 5 }, () => {
      const socket = connect(gateway.port, '127.0.0.1')
      socket.write(`GET /orders/1 HTTP/1.1\r\nhost: a.test\r\nauthorization: Bearer ${token}\r\n\r\n`)
      return socket
    })
    await until(async () => expect(await heldTotal(gateway)).toBeGreaterThan(0))
    for (const socket of sockets) socket.resetAndDestroy()
    await until(async () =>
      expect((await gateway.metrics.render()).text).toContain('surrogate_gateway_refusals_held 0'),
    )
    expect((await gateway.call('/orders/1')).status).toBe(200)
  })

  test('is told apart from others behind the same proxy', async () => {
    const gateway = await start({ refusedTokens: 1 })
    const token = await unknownKeyToken(gateway)
    const from = (address: string) =>
      gateway.call('/orders/1', { token, headers: { 'x-forwarded-for': address, authorization: `Bearer ${token}` } })
    await Promise.all(Array.from({ length: 9 }, (_, host) => from(`192.0.2.${host}`)))
    expect(await heldTotal(gateway)).toBe(0)
    await Promise.all(Array.from({ length: 9 }, () => from('198.51.100.1')))
    expect(await heldTotal(gateway)).toBeGreaterThan(0)
  })

  test('on one connection without waiting for answers gets them in order, and the good ones between them too', async () => {
    const gateway = await start({ refusedTokens: 4 })
    const bad = await unknownKeyToken(gateway)
    const good = await gateway.issuer.sign({ scope: 'read:orders' })
    const line = (token: string, last: boolean) =>
      `GET /orders/1 HTTP/1.1\r\nhost: a.test\r\nauthorization: Bearer ${token}\r\n${last ? 'connection: close\r\n' : ''}\r\n`
    const tokens = [bad, bad, bad, good, bad, good]
    const received = await sendRaw(gateway.port, tokens.map((token, index) => line(token, index === 5)).join(''))
    const statuses = [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) =>
      status === '200' ? 'good' : 'bad',
    )
    expect(statuses).toEqual(['bad', 'bad', 'bad', 'good', 'bad', 'good'])
  })
})

describe('the throttle of refusals', () => {
  const from = (clientIp: string) => ({ request: { clientIp } }) as RequestContext

  /** Whether each is answered at once. */
  const throttleOf = (perSecond: number) => {
    const throttle = createRefusalThrottle({ perSecond, metrics: createMetrics() })
    let late = 0
    return {
      asks(address: string, code: ProblemCode = 'invalid_token'): boolean {
        let returned = false
        let atOnce = false
        throttle.throttle(from(address), code, () => {
          if (returned) late++
          else atOnce = true
        })
        returned = true
        return atOnce
      },
      late: () => late,
    }
  }
  const times = (count: number, ask: () => boolean) => Array.from({ length: count }, ask)

  test('half of what is allowed in a second is answered at once, the rest in turn', async () => {
    const { asks, late } = throttleOf(4)
    expect(times(4, () => asks('192.0.2.1'))).toEqual([true, true, false, false])
    expect(asks('192.0.2.2')).toBe(true)
    await until(() => expect(late()).toBe(2))
  })

  test('an IPv6 network is one client', () => {
    const { asks } = throttleOf(1)
    expect(asks('2001:db8::1')).toBe(true)
    expect(asks('2001:db8::2')).toBe(false)
    expect(asks('2001:db8:0:1::1')).toBe(true)
  })

  test('refusals of somebody known do not wait', () => {
    const { asks } = throttleOf(1)
    const codes = ['insufficient_scope', 'policy_denied', 'rate_limited', 'not_found', 'upstream_unavailable'] as const
    for (const code of [...codes, ...codes]) expect(asks('192.0.2.1', code)).toBe(true)
    expect(
      (['token_missing', 'invalid_token', 'keys_unavailable', 'issuer_unavailable'] as const).map((code) =>
        asks('192.0.2.1', code),
      ),
    ).toEqual([true, false, false, false])
  })

  test('no more than a thousand wait, whoever they are from', async () => {
    const { asks, late } = throttleOf(1)
    times(1, () => asks('192.0.2.1'))
    expect(times(1_000, () => asks('192.0.2.1'))).not.toContain(true)
    expect(asks('192.0.2.1')).toBe(true)
    await until(() => expect(late()).toBe(1_000))
  })
})

/** A server whose handler gets each request with the pipeline that has these stages, on a connection of its own. */
const serve = async (options: {
  stages: readonly Stage[]
  handler: (context: RequestContext, pass: () => void) => void
}) => {
  const finished: RequestContext[] = []
  const pass = createPipeline(options.stages, { logger: silentLogger, onFinish: (context) => finished.push(context) })
  const server = createServer((incoming, response) => {
    const context = newRequestContext(incoming, response)
    options.handler(context, () => pass(context))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  cleanup.push(() => {
    socket.destroy()
    server.close()
  })
  return { socket, finished }
}

const request = 'GET / HTTP/1.1\r\nhost: a.test\r\n\r\n'

test('what is sent behind a request that is not answered yet is not read', async () => {
  const release = Promise.withResolvers<void>()
  let parsed = 0
  const { socket, finished } = await serve({
    stages: [({ response }) => release.promise.then(() => void response.end('ok')).then(() => answered)],
    handler: (_exchange, pass) => {
      parsed++
      pass()
    },
  })
  const total = 10_000
  socket.resume()
  socket.write(request.repeat(total))
  await until(() => expect(parsed).toBeGreaterThan(1))
  // Many turns in which everything that the system has could be read.
  for (let turn = 0; turn < 2_000; turn++) await new Promise((resolve) => setImmediate(resolve))
  expect(parsed).toBeLessThan(131_072 / request.length)

  release.resolve()
  await until(() => expect(finished).toHaveLength(total))
})

test('a request that was answered before it came to a guard does not hold up its connection', async () => {
  const { socket } = await serve({
    stages: [() => answered],
    handler: ({ response }, pass) => void response.end('answered before', () => setImmediate(pass)),
  })
  let received = ''
  socket.on('data', (chunk) => (received += chunk))
  for (const answers of [1, 2, 3]) {
    socket.write(request)
    await until(() => expect(received.split('answered before')).toHaveLength(answers + 1))
    await new Promise((resolve) => setImmediate(resolve))
  }
})
