import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { addressKey } from '../../../issuer/base/rate-limits/address-key.ts'
import { createRateLimiter } from '../../../issuer/base/rate-limits/rate-limiter.ts'
import type { RateLimits } from '../../../issuer/base/rate-limits/rate-limits.ts'
import { loadIssuerConfig } from '../../../issuer/config.ts'
import type { Query } from '../../../platform/database/database.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { type Answer, basic, formOf, request, startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

describe('a bucket', () => {
  let db: TestDatabase
  beforeAll(async () => {
    db = await createTestDatabase()
  })
  afterAll(() => db.close())

  /** An instance with a clock of its own; `leases` counts its round trips. */
  const instance = (name: string, perMinute: number) => {
    const state = { leases: 0, ms: Date.now() }
    const query: Query = (...call) => {
      state.leases++
      return db.database.query(...call)
    }
    const limiter = createRateLimiter({ query, name, perMinute, now: () => new Date(state.ms) })
    return { ...limiter, state }
  }
  const takeAll = async (limiter: { take(key: string): Promise<number> }, key: string, times: number) => {
    const waits = await Promise.all(Array.from({ length: times }, () => limiter.take(key)))
    return waits.filter((seconds) => seconds === 0).length
  }
  const age = (seconds: number) =>
    db.database.pool.query(`UPDATE rate_limit_buckets SET updated_at = now() - interval '${seconds} seconds'`)
  /** Takes one, and stops the time of the bucket: what a test counts must not depend on how long it runs. */
  const begin = async (limiter: { take(key: string): Promise<number> }) => {
    expect(await limiter.take('a')).toBe(0)
    await age(-3_600)
  }

  test('gives what it holds, then nothing, and says when to come again', async () => {
    const limiter = instance('whole', 10)
    await begin(limiter)
    expect(await takeAll(limiter, 'a', 30)).toBe(9)
    const wait = await limiter.take('a')
    expect(wait).toBeGreaterThanOrEqual(1)
    expect(wait).toBeLessThanOrEqual(6)
    expect(limiter.wait('a')).toBe(wait)
    expect(limiter.wait('b')).toBe(0)
    expect(await limiter.take('b')).toBe(0)
  })

  test('of ten parallel instances gives no more than of one', async () => {
    const instances = Array.from({ length: 10 }, () => instance('shared', 100))
    await begin(instances[0]!)
    const given = await Promise.all(instances.map((each) => takeAll(each, 'a', 50)))
    expect(given.reduce((sum, each) => sum + each)).toBe(99)
  })

  test('costs one round trip for a tenth of it, none when it is known to be empty', async () => {
    const limiter = instance('leased', 100)
    await begin(limiter)
    expect(await takeAll(limiter, 'a', 99)).toBe(99)
    expect(limiter.state.leases).toBe(10)
    await limiter.take('a')
    const { leases } = limiter.state
    for (let count = 0; count < 20; count++) expect(await limiter.take('a')).toBeGreaterThan(0)
    expect(limiter.state.leases).toBe(leases)
  })

  test('fills again with time, and never over its brim', async () => {
    const limiter = instance('filling', 60)
    await begin(limiter)
    expect(await takeAll(limiter, 'a', 60)).toBe(59)
    limiter.state.ms += 60_000
    await age(10)
    for (let count = 0; count < 10; count++) expect(await limiter.take('a')).toBe(0)
    limiter.state.ms += 3_600_000
    await age(3_600)
    await begin(limiter)
    expect(await takeAll(limiter, 'a', 70)).toBe(59)
  })

  test('gives an instance nothing back for what it did not use for a minute', async () => {
    const [idle, busy] = [instance('idle', 20), instance('idle', 20)]
    await begin(idle)
    expect(await takeAll(busy, 'a', 30)).toBe(18)
    idle.state.ms += 60_000
    expect(await idle.take('a')).toBeGreaterThan(0)
  })

  test('of a limit below ten is leased one by one', async () => {
    const limiter = instance('small', 3)
    await begin(limiter)
    expect(await takeAll(limiter, 'a', 10)).toBe(2)
  })
})

test('an IPv6 subscriber is one address, however many of its network it uses', () => {
  expect(addressKey('192.0.2.1')).toBe('192.0.2.1')
  expect(addressKey('2001:db8:1:2:3:4:5:6')).toBe('2001:db8:1:2::/64')
  expect(addressKey('2001:0DB8:0001:0002::ffff')).toBe('2001:db8:1:2::/64')
  expect(addressKey('2001:db8::1')).toBe('2001:db8:0:0::/64')
  expect(addressKey('::1')).toBe('0:0:0:0::/64')
  expect(addressKey('fe80::1%eth0')).toBe('fe80:0:0:0::/64')
  expect(addressKey('::ffff:192.0.2.1')).toBe('192.0.2.1')
  expect(addressKey('')).toBe('')
})

test('the settings: sixty failures a minute, and no other limit', () => {
  const environment = { KEY_ENCRYPTION_KEY: Buffer.alloc(32).toString('base64') }
  expect(loadIssuerConfig(environment).rateLimits).toEqual({ failedAuthentications: 60 })
  const set = { RATE_LIMIT_FAILED_AUTHENTICATIONS: '5', RATE_LIMIT_TOKENS: '10', RATE_LIMIT_MANAGEMENT: '20' }
  expect(loadIssuerConfig({ ...environment, ...set }).rateLimits).toEqual({
    failedAuthentications: 5,
    tokens: 10,
    management: 20,
  })
  expect(() => loadIssuerConfig({ ...environment, RATE_LIMIT_TOKENS: '0' })).toThrow(/RATE_LIMIT_TOKENS/)
})

describe('the issuer', () => {
  let issuer: TestIssuer
  let resource: string
  let client: TestApplication
  afterEach(() => issuer.close())
  const start = async (rateLimits: RateLimits, instances = 1) => {
    issuer = await startTestIssuer({ instances, config: { rateLimits, trustedProxies: ['127.0.0.1'] } })
    resource = await issuer.createResource()
    client = await issuer.createApplication({ type: 'MachineToMachine' })
  }
  const ask = (
    application: TestApplication,
    {
      from = '192.0.2.1',
      instance = 0,
      path = '/oidc/token',
    }: { from?: string; instance?: number; path?: string } = {},
  ) =>
    request(`${issuer.urls[instance]}${path}`, {
      method: 'POST',
      headers: { authorization: basic(application), 'x-forwarded-for': from },
      body: formOf({ grant_type: 'client_credentials', resource, token: 'x' }),
    })
  const guess = (options?: Parameters<typeof ask>[1], id = client.id) => ask({ id, secret: 'wrong' }, options)
  /** Buckets fill no more: what a test counts must not depend on how long it runs. */
  const stopTime = () => issuer.sql(`UPDATE rate_limit_buckets SET updated_at = now() + interval '1 hour'`)
  const statuses = (answers: readonly Answer[]) => answers.map(({ status }) => status)
  const expectLimited = (answer: Answer) => {
    expect(answer).toMatchObject({
      status: 429,
      body: { error: 'temporarily_unavailable', code: 'oidc.temporarily_unavailable', message: expect.any(String) },
    })
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect(answer.headers.get('cache-control')).toBe('no-store')
  }

  test('stops an address that tries out secrets, whatever clients it names, on every instance', async () => {
    await start({ failedAuthentications: 10 }, 2)
    const guesses = [await guess({}, 'client')]
    await stopTime()
    for (let n = 1; n < 10; n++) guesses.push(await guess({ instance: n % 2 }, `client-${n}`))
    expect(statuses(guesses)).toEqual(Array(10).fill(401))
    for (const instance of [0, 1]) {
      expectLimited(await guess({ instance }))
      // By then even the right secret is not looked at: nobody learns whether it was right.
      expectLimited(await ask(client, { instance }))
      expectLimited(await ask(client, { instance, path: '/oidc/token/introspection' }))
    }
    expect((await ask(client, { from: '192.0.2.2' })).status).toBe(200)
  })

  // One program with a wrong secret, trying again and again, must not stop its neighbours behind the same address.
  test('lets in who has authenticated from there before, and only with the right secret', async () => {
    await start({ failedAuthentications: 10 })
    expect((await ask(client)).status).toBe(200)
    await guess({}, 'somebody')
    await stopTime()
    for (let n = 1; n < 10; n++) await guess({}, 'somebody')
    expectLimited(await guess({}, 'somebody'))
    expect((await ask(client)).status).toBe(200)
    expectLimited(await guess())
    const newcomer = await issuer.createApplication({ type: 'MachineToMachine' })
    expectLimited(await ask(newcomer))
  })

  test('stops guesses at one client from many addresses, and lets the client itself in', async () => {
    await start({ failedAuthentications: 10 })
    const from = (n: number) => `198.51.100.${n}`
    await guess({ from: from(100) })
    await stopTime()
    const guesses = await Promise.all(Array.from({ length: 30 }, (_, n) => guess({ from: from(n) })))
    expect(statuses(guesses).filter((status) => status === 401)).toHaveLength(9)
    for (const answer of guesses) if (answer.status !== 401) expectLimited(answer)
    expect((await ask(client, { from: '203.0.113.1' })).status).toBe(200)
    expectLimited(await guess({ from: '203.0.113.1' }))
  })

  test('counts failures of introspection, revocation and the feed with those of the token endpoint', async () => {
    await start({ failedAuthentications: 4 })
    await guess({ path: '/oidc/token/introspection' })
    await stopTime()
    await guess({ path: '/oidc/token/revocation' })
    const feed = () =>
      request(`${issuer.url}/oidc/revocations`, {
        headers: { authorization: basic({ id: client.id, secret: 'wrong' }), 'x-forwarded-for': '192.0.2.1' },
      })
    await feed()
    await guess()
    expectLimited(await feed())
  })

  test('does not count what succeeds, nor refusals for another reason', async () => {
    await start({ failedAuthentications: 3 })
    const answers = []
    for (let n = 0; n < 20; n++) answers.push(await ask(client))
    expect(statuses(answers)).toEqual(Array(20).fill(200))
    for (let n = 0; n < 10; n++) {
      const form = { grant_type: 'client_credentials', resource: 'https://unknown.example' }
      expect((await issuer.token(client, form)).status).toBe(400)
    }
    expect((await issuer.sql('SELECT key FROM rate_limit_buckets')).length).toBe(0)
  })

  test('limits the tokens of a client, when told to', async () => {
    await start({ failedAuthentications: 60, tokens: 5 })
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask(client)))
    expect(statuses(answers).filter((status) => status === 200)).toHaveLength(5)
    for (const answer of answers) if (answer.status !== 200) expectLimited(answer)
    const other = await issuer.createApplication({ type: 'MachineToMachine' })
    expect((await ask(other)).status).toBe(200)
  })

  test('limits the tokens of an address, when told to', async () => {
    await start({ failedAuthentications: 60, tokensPerAddress: 5 })
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask(client)))
    expect(statuses(answers).filter((status) => status === 200)).toHaveLength(5)
    expect((await ask(client, { from: '192.0.2.9' })).status).toBe(200)
  })

  test('limits the Management API per client, in its own words', async () => {
    await start({ failedAuthentications: 60, management: 5 })
    const token = await issuer.managementToken()
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => issuer.api('GET', '/users', undefined, { token })),
    )
    expect(statuses(answers).filter((status) => status === 200)).toHaveLength(5)
    const refused = answers.find(({ status }) => status !== 200)!
    expect(refused).toMatchObject({ status: 429, body: { code: 'rate_limit.exceeded' } })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  })

  test('keeps neither addresses nor names of clients in the database', async () => {
    await start({ failedAuthentications: 10 })
    await guess({ from: '192.0.2.77' }, 'a'.repeat(2_000))
    const [row, ...others] = await issuer.sql<{ key: Buffer }>('SELECT key FROM rate_limit_buckets')
    expect(others).toHaveLength(0)
    expect(row!.key).toHaveLength(32)
  })
})
