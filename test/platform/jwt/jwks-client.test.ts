import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { fetchJson } from '../../../platform/jwt/fetch-json.ts'
import {
  createJwksClient,
  type JwksClient,
  type JwksClientOptions,
  KeysUnavailable,
} from '../../../platform/jwt/jwks-client.ts'
import { silentLogger } from '../../../platform/logger.ts'
import { createMetrics } from '../../../platform/metrics.ts'
import { startTokenIssuer, type TokenIssuer } from '../../support/token-issuer.ts'
import { until } from '../../support/until.ts'

const cleanup: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const startIssuer = async (options?: Parameters<typeof startTokenIssuer>[0]) => {
  const issuer = await startTokenIssuer(options)
  cleanup.push(() => issuer.close())
  return issuer
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

const clientOf = (issuer: Pick<TokenIssuer, 'issuer'>, options: Partial<JwksClientOptions> = {}): JwksClient => {
  const client = createJwksClient({ issuer: issuer.issuer, logger: silentLogger, ...options })
  cleanup.push(() => client.close())
  return client
}

const jwksFetches = (issuer: TokenIssuer) => issuer.requests.filter((path) => path.endsWith('/jwks')).length

describe('finding the keys', () => {
  test('by discovery', async () => {
    const issuer = await startIssuer()
    const client = clientOf(issuer)
    await client.ready
    expect(client.peek(issuer.key.kid)).toMatchObject({ kid: issuer.key.kid, alg: 'ES256' })
    expect(issuer.requests).toEqual(['/oidc/.well-known/openid-configuration', '/oidc/jwks'])
    expect(client.status()).toEqual({ ok: true })
  })

  test('by the RFC 8414 form when there is no OpenID document', async () => {
    const paths: string[] = []
    const keys = await startIssuer()
    const server = createServer((request, response) => {
      paths.push(request.url!)
      if (!request.url!.startsWith('/.well-known')) return void response.writeHead(404).end()
      response.end(JSON.stringify({ issuer: `${origin}/tenant`, jwks_uri: keys.jwksUri }))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    cleanup.push(async () => void server.close())
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const client = clientOf({ issuer: `${origin}/tenant` })
    await client.ready
    expect(paths).toEqual([
      '/tenant/.well-known/openid-configuration',
      '/.well-known/oauth-authorization-server/tenant',
    ])
    expect(client.peek(keys.key.kid)).toBeDefined()
  })

  test('at a given address, without discovery', async () => {
    const issuer = await startIssuer()
    const client = clientOf({ issuer: 'https://public.test/oidc' }, { jwksUri: issuer.jwksUri })
    await client.ready
    expect(issuer.requests).toEqual(['/oidc/jwks'])
  })

  test.each([
    ['is of another issuer', { issuer: 'http://127.0.0.1/other', jwks_uri: 'http://127.0.0.1/jwks' }, 'another issuer'],
    ['names no address', { issuer: 'x' }, 'no discovery document'],
    ['is no JSON', 'nothing', 'did not answer with JSON'],
  ])('a discovery document that %s is refused', async (_, discovery, detail) => {
    const issuer = await startIssuer()
    issuer.answer = { discovery }
    const client = clientOf(issuer)
    await expect(client.get('k')).rejects.toThrow(KeysUnavailable)
    expect(client.status()).toEqual({ ok: false, detail: expect.stringContaining(detail) })
    expect(jwksFetches(issuer)).toBe(0)
  })
})

describe('an answer that cannot be trusted', () => {
  test.each<[string, TokenIssuer['answer'], string]>([
    ['a redirect', { status: 302, headers: { location: '/oidc/jwks2' } }, '302'],
    ['an error', { status: 500 }, '500'],
    ['too large', { jwks: { keys: [], pad: 'x'.repeat(300_000) } }, 'larger than'],
    ['no key set', { jwks: { keys: 'none' } }, 'not a JWK Set'],
    ['no usable key', { jwks: { keys: [] } }, 'no usable key'],
    ['silence', { hang: true }, 'within 50 ms'],
  ])('%s leaves no keys, and says why', async (_, answer, detail) => {
    const issuer = await startIssuer()
    issuer.answer = answer
    const fetch = fetchJson(answer.hang ? { timeoutMs: 50 } : {})
    const client = clientOf(issuer, { jwksUri: issuer.jwksUri, fetch, retryMs: 60_000 })
    await expect(client.get('k')).rejects.toThrow(KeysUnavailable)
    expect(client.status()).toEqual({ ok: false, detail: expect.stringContaining(detail) })
    expect(jwksFetches(issuer)).toBe(1)
  })
})

describe('rotation', () => {
  test('an unknown kid is fetched once for all who wait, then not again within the cooldown', async () => {
    const issuer = await startIssuer()
    const clock = movableClock()
    const client = clientOf(issuer, { now: clock.now, cooldownMs: 10_000 })
    await client.ready
    const key = await issuer.rotate()

    clock.advance(3_000)
    await expect(client.get(key.kid), 'the first fetch is not 10 s ago').rejects.toMatchObject({
      name: 'KeysUnavailable',
      retryAfterMs: 7_000,
    })
    clock.advance(7_000)
    const found = await Promise.all(Array.from({ length: 50 }, () => client.get(key.kid)))
    expect(found.every((one) => one?.kid === key.kid)).toBe(true)
    expect(jwksFetches(issuer)).toBe(2)

    for (let attempt = 0; attempt < 100; attempt++) {
      await expect(client.get(`unknown-${attempt}`)).rejects.toThrow(KeysUnavailable)
    }
    expect(jwksFetches(issuer)).toBe(2)
  })

  test('a kid that the issuer was asked about and does not have is known to be none; so are those that waited', async () => {
    const issuer = await startIssuer()
    const clock = movableClock()
    const client = clientOf(issuer, { now: clock.now })
    await client.ready
    await expect(client.get('one')).rejects.toThrow(KeysUnavailable)
    await expect(client.get('two')).rejects.toThrow(KeysUnavailable)
    clock.advance(10_000)
    expect(await client.get('two')).toBeUndefined()
    expect(await client.get('one')).toBeUndefined()
    await expect(client.get('three'), 'seen since').rejects.toThrow(KeysUnavailable)
    expect(jwksFetches(issuer)).toBe(2)
  })

  test('a kid that nobody publishes is never in doubt again: not after other fetches, nor while the issuer is away', async () => {
    const issuer = await startIssuer()
    const clock = movableClock()
    const client = clientOf(issuer, { now: clock.now })
    await client.ready
    await expect(client.get('nobodys')).rejects.toThrow(KeysUnavailable)
    for (let round = 0; round < 5; round++) {
      clock.advance(10_000)
      expect(await client.get('nobodys'), 'this asks the issuer').toBeUndefined()
      expect(await client.get('nobodys'), 'and this does not').toBeUndefined()
      await expect(client.get(`other-${round}`)).rejects.toThrow(KeysUnavailable)
      clock.advance(10_000)
      expect(await client.get(`other-${round}`)).toBeUndefined()
      expect(await client.get('nobodys'), 'the fetch was for another').toBeUndefined()
    }
    issuer.answer = { status: 503 }
    clock.advance(10_000)
    expect(await client.get('nobodys'), 'the issuer is away').toBeUndefined()
  })

  test('a withdrawn kid is known to be none for as long as it is not published again', async () => {
    const issuer = await startIssuer()
    const clock = movableClock()
    const client = clientOf(issuer, { now: clock.now })
    await client.ready
    const withdrawn = issuer.key
    const { kid } = await issuer.rotate({ drop: true })
    clock.advance(10_000)
    expect(await client.get(kid)).toBeDefined()
    for (let round = 0; round < 3; round++) {
      expect(await client.get(withdrawn.kid)).toBeUndefined()
      clock.advance(10_000)
    }
    issuer.published.push(withdrawn.jwk)
    expect(await client.get(withdrawn.kid)).toMatchObject({ kid: withdrawn.kid })
    expect(await client.get(withdrawn.kid)).toMatchObject({ kid: withdrawn.kid })
  })

  test('any number of unknown kids costs one fetch a cooldown, and no memory without bound', async () => {
    const issuer = await startIssuer()
    const clock = movableClock()
    const metrics = createMetrics()
    const client = clientOf(issuer, { now: clock.now, metrics })
    await client.ready
    for (let attempt = 0; attempt < 5_000; attempt++) {
      await expect(client.get(`unknown-${attempt}`)).rejects.toThrow(KeysUnavailable)
    }
    clock.advance(10_000)
    expect(await client.get('unknown-0')).toBeUndefined()
    await expect(client.get('unknown-4999'), 'not remembered').rejects.toThrow(KeysUnavailable)
    expect(jwksFetches(issuer)).toBe(2)
    expect((await metrics.render()).text).toContain(`surrogate_jwks_unknown_kids_total{issuer="${issuer.issuer}"} 5001`)
  })

  test('a key that leaves raises the generation; one that joins does not, and known keys stay the same objects', async () => {
    const issuer = await startIssuer()
    const clock = movableClock()
    const client = clientOf(issuer, { now: clock.now })
    let changes = 0
    client.onKeysChanged(() => changes++)
    await client.ready
    const first = client.peek(issuer.key.kid)

    const second = await issuer.rotate()
    clock.advance(10_000)
    expect(await client.get(second.kid)).toBeDefined()
    expect([client.generation, changes, client.peek(first!.kid) === first]).toEqual([0, 0, true])

    const third = await issuer.rotate({ drop: true })
    clock.advance(10_000)
    expect(await client.get(third.kid)).toBeDefined()
    expect([client.generation, changes, client.peek(first!.kid)]).toEqual([1, 1, undefined])
  })

  test('keys are renewed when max-age is over, without a request asking', async () => {
    const issuer = await startIssuer()
    issuer.answer = { headers: { 'cache-control': 'max-age=0' } }
    const client = clientOf(issuer, { minAgeMs: 20 })
    await client.ready
    const key = await issuer.rotate()
    await until(() => expect(client.peek(key.kid)).toBeDefined())
  })
})

describe('an issuer that is down', () => {
  test('its keys are used past their age, with an alarm, up to a bound', async () => {
    const issuer = await startIssuer()
    issuer.answer = { headers: { 'cache-control': 'max-age=300' } }
    const clock = movableClock()
    const metrics = createMetrics()
    const client = clientOf(issuer, { now: clock.now, maxStaleMs: 600_000, metrics })
    await client.ready
    const { kid } = issuer.key

    issuer.answer = { status: 503 }
    clock.advance(300_000)
    await expect(client.get('unknown'), 'it could not be asked').rejects.toThrow(KeysUnavailable)
    expect(client.peek(kid)).toBeDefined()
    expect(client.status()).toEqual({ ok: true, detail: expect.stringContaining('could not be renewed') })
    expect((await metrics.render()).text).toContain(`surrogate_jwks_stale{issuer="${issuer.issuer}"} 1`)

    clock.advance(600_000)
    expect(client.usable()).toBe(false)
    await expect(client.get(kid)).rejects.toThrow(KeysUnavailable)
    expect(client.status()).toEqual({ ok: true, detail: expect.stringContaining('too old') })

    issuer.answer = {}
    clock.advance(10_000)
    expect(await client.get(kid)).toBeDefined()
    expect(client.status()).toEqual({ ok: true })
  })

  test('at the start it is asked until it answers', async () => {
    const issuer = await startIssuer()
    issuer.answer = { status: 503 }
    const client = clientOf(issuer, { retryMs: 5 })
    await until(() => expect(issuer.requests.length).toBeGreaterThan(2))
    issuer.answer = {}
    await client.ready
    expect(client.peek(issuer.key.kid)).toBeDefined()
  })
})
