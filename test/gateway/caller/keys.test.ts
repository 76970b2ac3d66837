import { afterEach, describe, expect, test } from 'vitest'
import { type Logger, silentLogger } from '../../../platform/logger.ts'
import { orders, startTestGateway, type TestGateway, takenEverywhere } from '../../support/gateway.ts'
import { startTokenIssuer } from '../../support/token-issuer.ts'
import { until } from '../../support/until.ts'

const running: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of running.splice(0).reverse()) await one.close()
})

const start = async (options?: Parameters<typeof startTestGateway>[0]): Promise<TestGateway> => {
  const gateway = await startTestGateway(options)
  running.push(gateway)
  return gateway
}

/** Time stands still until the test moves it. */
const movableClock = () => {
  let time = Date.now()
  return {
    now: () => new Date(time),
    advance: (ms: number) => {
      time += ms
    },
  }
}

const answerOf = async (response: Response) => [response.status, ((await response.json()) as { code: string }).code]

test('before there are keys: not ready, and 503 for tokens but not for routes without', async () => {
  const silent = await startTokenIssuer()
  silent.answer = { status: 503 }
  running.push(silent)
  const gateway = await start({ config: () => ({ issuers: [{ issuer: silent.issuer }] }) })
  const token = await silent.sign({ scope: 'read:orders' })

  expect(await answerOf(await gateway.call('/orders', { token }))).toEqual([503, 'keys_unavailable'])
  expect((await fetch(`${gateway.url}/public`)).status).toBe(200)
  expect((await gateway.health.ready()).ok).toBe(false)

  silent.answer = {}
  await until(async () => expect((await gateway.health.ready()).ok).toBe(true))
  expect((await gateway.call('/orders', { token })).status).toBe(200)
})

test('a new key is found by the first token that names it; then unknown ones wait, and cost nothing', async () => {
  const clock = movableClock()
  const gateway = await start({ now: clock.now })
  expect((await gateway.call('/orders')).status).toBe(200)
  await gateway.issuer.rotate()
  clock.advance(10_000)
  expect((await gateway.call('/orders')).status).toBe(200)

  const fetches = gateway.issuer.requests.length
  const unpublished = await gateway.issuer.rotate({ publish: false })
  for (let attempt = 0; attempt < 20; attempt++) {
    const token = await gateway.issuer.sign({ jti: String(attempt) }, {}, unpublished)
    const answer = await gateway.call('/orders', { token })
    expect(answer.headers.get('retry-after')).toBe('10')
    expect(await answerOf(answer)).toEqual([503, 'keys_unavailable'])
  }
  expect(gateway.issuer.requests.length).toBe(fetches)
  clock.advance(10_000)
  const token = await gateway.issuer.sign({}, {}, unpublished)
  expect(await answerOf(await gateway.call('/orders', { token }))).toEqual([401, 'invalid_token'])
  expect(await answerOf(await gateway.call('/orders', { token }))).toEqual([401, 'invalid_token'])
  expect(gateway.issuer.requests.length, 'asked once').toBe(fetches + 1)
})

test('after a rotation without notice a token of the new key is never called bad: 503 with Retry-After, then 200', async () => {
  const clock = movableClock()
  const gateway = await start({ now: clock.now })
  expect((await gateway.call('/orders')).status).toBe(200)
  await gateway.issuer.rotate({ drop: true })
  const token = await gateway.issuer.sign({ scope: 'read:orders' })
  clock.advance(4_000)
  const early = await gateway.call('/orders', { token })
  expect([early.status, early.headers.get('retry-after')]).toEqual([503, '6'])
  clock.advance(6_000)
  expect((await gateway.call('/orders', { token })).status).toBe(200)
})

test('an issuer says how often, how long and for how much it is asked for keys', async () => {
  const clock = movableClock()
  const silent = await startTokenIssuer()
  silent.answer = { hang: true }
  const large = await startTokenIssuer()
  large.answer = { jwks: { keys: large.published, padding: 'x'.repeat(4_000) } }
  running.push(silent, large)
  const gateway = await start({
    now: clock.now,
    config: ({ issuer }) => ({
      issuers: [
        { issuer: issuer.issuer, jwks: { cooldown: '60s' } },
        { issuer: silent.issuer, jwks: { timeout: '100ms' } },
        { issuer: large.issuer, jwks: { maxBytes: '3kB' } },
      ],
      routes: [{ id: 'a', path: '/**', audience: [orders], scopes: [], issuers: [issuer.issuer], upstream: 'orders' }],
    }),
  })
  await until(async () => {
    const { checks } = await gateway.health.ready()
    expect(JSON.stringify(checks)).toContain(
      `${silent.issuer}/.well-known/openid-configuration did not answer within 100 ms`,
    )
    expect(JSON.stringify(checks)).toContain('the answer is larger than 3072 bytes')
  })
  expect((await gateway.call('/orders')).status).toBe(200)
  await gateway.issuer.rotate()
  clock.advance(50_000)
  const early = await gateway.call('/orders')
  expect([early.status, early.headers.get('retry-after')]).toEqual([503, '10'])
  clock.advance(10_000)
  expect((await gateway.call('/orders')).status).toBe(200)
})

test('a flood of unknown keys is not written to the log', async () => {
  const lines: unknown[] = []
  const logger = { ...silentLogger, warn: (...line: unknown[]) => lines.push(line) } as unknown as Logger
  const gateway = await start({ logger })
  const unpublished = await gateway.issuer.rotate({ publish: false })
  for (let attempt = 0; attempt < 5; attempt++) {
    const token = await gateway.issuer.sign({ jti: String(attempt) }, {}, unpublished)
    expect((await gateway.call('/orders', { token })).status).toBe(503)
  }
  expect(lines).toEqual([])
})

test('a token that was accepted is refused once its key has left', async () => {
  const clock = movableClock()
  const gateway = await start({ now: clock.now })
  const token = await gateway.issuer.sign({ scope: 'read:orders' })
  expect((await gateway.call('/orders', { token })).status).toBe(200)

  await gateway.issuer.rotate({ drop: true })
  expect((await gateway.call('/orders', { token })).status, 'nobody has noticed yet').toBe(200)
  clock.advance(10_000)
  expect((await gateway.call('/orders')).status, 'a token of the new key makes the gateway look').toBe(200)
  expect((await gateway.call('/orders', { token })).status).toBe(401)
})

test('with the issuer down its tokens are served for an hour past max-age, cached ones too, then 503', async () => {
  const clock = movableClock()
  const gateway = await start({ now: clock.now })
  const inTwoHours = Math.floor(Date.now() / 1000) + 10_000
  const token = await gateway.issuer.sign({ scope: 'read:orders', exp: inTwoHours })
  expect((await gateway.call('/orders', { token })).status).toBe(200)
  gateway.issuer.answer = { status: 500 }

  clock.advance(300_000)
  const fresh = await gateway.issuer.sign({ scope: 'read:orders', jti: 'fresh', exp: inTwoHours })
  expect((await gateway.call('/orders', { token: fresh })).status).toBe(200)
  clock.advance(3_600_000)
  for (const one of [token, fresh]) {
    expect(await answerOf(await gateway.call('/orders', { token: one }))).toEqual([503, 'keys_unavailable'])
  }
})

test('a cached token ends with its exp, to the second of the skew', async () => {
  const clock = movableClock()
  const gateway = await start({ now: clock.now })
  const token = await gateway.issuer.sign({ scope: 'read:orders', exp: Math.floor(clock.now().getTime() / 1000) + 60 })
  expect((await gateway.call('/orders', { token })).status).toBe(200)
  clock.advance(60_000)
  expect((await gateway.call('/orders', { token })).status, 'within the skew of 5 s').toBe(200)
  clock.advance(6_000)
  expect((await gateway.call('/orders', { token })).status).toBe(401)
})

describe('several issuers', () => {
  test("each one's tokens are verified with its own keys only", async () => {
    const other = await startTokenIssuer({ alg: 'EdDSA' })
    running.push(other)
    const clock = movableClock()
    const gateway = await start({
      now: clock.now,
      config: ({ issuer }) => takenEverywhere({ issuer: issuer.issuer }, { issuer: other.issuer, typ: ['JWT'] }),
    })
    const call = async (token: Promise<string>) => (await gateway.call('/orders', { token: await token })).status
    const scope = 'read:orders'
    expect(await call(gateway.issuer.sign({ scope }))).toBe(200)
    expect(await call(other.sign({ scope }, { typ: 'JWT' }))).toBe(200)
    expect(await call(other.sign({ scope }, { typ: 'at+jwt' })), 'its own types').toBe(401)
    expect(await call(other.sign({ scope, nonce: 'n' }, { typ: 'JWT' })), 'an ID token').toBe(401)
    clock.advance(10_000)
    expect(await call(other.sign({ scope, iss: gateway.issuer.issuer })), "another's name").toBe(401)
    expect(await call(gateway.issuer.sign({ scope, iss: other.issuer }, { typ: 'JWT' }))).toBe(401)
  })
})
