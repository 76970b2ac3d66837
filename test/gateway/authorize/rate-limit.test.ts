import { afterEach, describe, expect, test } from 'vitest'
import { networkOf } from '../../../gateway/authorize/rate-limit.ts'
import { createTokenBuckets } from '../../../gateway/authorize/token-buckets.ts'
import { orders, startTestGateway, type TestGateway } from '../../support/gateway.ts'

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

describe('token buckets', () => {
  /** What a caller gets at each of these times: tokens left, or how long to wait (negative). */
  const answers = (bucket: Parameters<typeof createTokenBuckets>[0], times: number[]) => {
    const buckets = createTokenBuckets(bucket)
    return times.map((at) => {
      const time = 1_000_000 + at
      const { wait, left } = buckets.ask('caller', time)
      if (wait > 0) return -wait
      buckets.take('caller', time)
      return left
    })
  }

  test('so many at once, then evenly', () => {
    expect(answers({ requests: 2, per: 1_000, burst: 3 }, [0, 0, 0, 0, 499, 500, 500, 1_000])).toEqual([
      2, 1, 0, -500, -1, 0, -500, 0,
    ])
  })

  test('a full bucket does not get fuller', () => {
    expect(answers({ requests: 1, per: 1_000, burst: 2 }, [0, 0, 3_600_000, 3_600_000, 3_600_000])).toEqual([
      1, 0, 1, 0, -1_000,
    ])
  })

  test('fractions of a millisecond add up', () => {
    // One every 3.33 ms, asked for every millisecond: the three at first, and 299 more in 999 ms.
    const times = Array.from({ length: 1_000 }, (_, ms) => ms)
    const taken = answers({ requests: 300, per: 1_000, burst: 3 }, times).filter((left) => left >= 0)
    expect(taken).toHaveLength(302)
  })

  test('callers do not share', () => {
    const buckets = createTokenBuckets({ requests: 1, per: 1_000, burst: 1 })
    buckets.take('one', 0)
    expect([buckets.ask('one', 0).wait, buckets.ask('other', 0).wait]).toEqual([1_000, 0])
  })

  test('memory is bounded, and what is forgotten too early is counted', () => {
    const buckets = createTokenBuckets({ requests: 1, per: 60_000, burst: 1, maxBuckets: 100 })
    for (let caller = 0; caller < 1_000; caller++) buckets.take(`caller ${caller}`, caller)
    expect(buckets.size).toBeLessThanOrEqual(100)
    expect(buckets.forgotten).toBeGreaterThan(800)
    // The latest are remembered.
    expect(buckets.ask('caller 999', 1_000).wait).toBeGreaterThan(0)
  })

  test('callers whose bucket is full again are forgotten without a loss', () => {
    const buckets = createTokenBuckets({ requests: 1, per: 1_000, burst: 2, maxBuckets: 1_000 })
    for (let caller = 0; caller < 300; caller++) buckets.take(`caller ${caller}`, 0)
    for (const time of [10_000, 20_000, 30_000]) buckets.take(`late ${time}`, time)
    expect([buckets.size, buckets.forgotten]).toEqual([2, 0])
  })
})

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
  ['2001:0DB8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['::', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['2001:db8::192.0.2.1', '2001:db8:0:0::/64'],
])('the address %s is counted as %s', (address, network) => {
  expect(networkOf(address)).toBe(network)
})

describe('at the gateway', () => {
  let ahead = 0
  const start = async (
    rateLimit: object | object[],
    { route = {}, config = {} }: { route?: object; config?: object } = {},
  ): Promise<TestGateway> => {
    ahead = 0
    const gateway = await startTestGateway({
      now: () => new Date(1_800_000_000_000 + ahead),
      config: () => ({
        routes: [
          {
            id: 'limited',
            path: '/orders/**',
            audience: [orders],
            scopes: ['read:orders'],
            upstream: 'orders',
            rateLimit,
            ...route,
          },
          { id: 'free', path: '/free/**', auth: 'none', upstream: 'orders' },
        ],
        ...config,
      }),
    })
    cleanup.push(() => gateway.close())
    return gateway
  }
  const tokenOf = (gateway: TestGateway, claims: Record<string, unknown>) =>
    gateway.issuer.sign({ scope: 'read:orders', iat: 1_800_000_000, exp: 1_800_010_000, ...claims })
  const statuses = async (gateway: TestGateway, token: string, times: number) => {
    const seen: number[] = []
    for (let time = 0; time < times; time++) {
      const answer = await gateway.call('/orders/1', { token })
      await answer.bytes()
      seen.push(answer.status)
    }
    return seen
  }

  test('too many: 429 with when to come back, and what the limit is', async () => {
    const gateway = await start({ by: 'subject', requests: 2, per: '1m' })
    const token = await tokenOf(gateway, {})
    const first = await gateway.call('/orders/1', { token })
    expect([first.status, first.headers.get('ratelimit-policy'), first.headers.get('ratelimit')]).toEqual([
      200,
      '"subject";q=2;w=60',
      '"subject";r=1;t=30',
    ])
    expect(await statuses(gateway, token, 1)).toEqual([200])
    const refused = await gateway.call('/orders/1', { token })
    expect(refused.status).toBe(429)
    expect(Object.fromEntries(refused.headers)).toMatchObject({
      'content-type': 'application/problem+json',
      'retry-after': '30',
      'ratelimit-policy': '"subject";q=2;w=60',
      ratelimit: '"subject";r=0;t=30',
    })
    expect(await refused.json()).toMatchObject({ code: 'rate_limited', status: 429 })
    expect(gateway.upstream.seen).toHaveLength(2)
    ahead = 30_000
    expect(await statuses(gateway, token, 2)).toEqual([200, 429])
    const { text } = await gateway.metrics.render()
    expect(text).toContain('surrogate_gateway_rate_limited_total{route="limited",limit="subject"} 2')
    expect((await fetch(`${gateway.url}/free/1`)).headers.has('ratelimit')).toBe(false)
  })

  test.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    ['subject', { sub: 'u1', client_id: 'c1' }, { sub: 'u2', client_id: 'c1' }],
    ['client', { sub: 'u1', client_id: 'c1' }, { sub: 'u1', client_id: 'c2' }],
    ['actor', { sub: 'u1', act: { sub: 's1' } }, { sub: 'u1', act: { sub: 's2' } }],
  ])('by %s: each has a bucket of its own', async (by, one, other) => {
    const gateway = await start({ by, requests: 1, per: '1m' })
    const [first, second] = [await tokenOf(gateway, one), await tokenOf(gateway, other)]
    expect(await statuses(gateway, first, 2)).toEqual([200, 429])
    // Another token of the same one is no way around.
    expect(await statuses(gateway, await tokenOf(gateway, { ...one, jti: 'another' }), 1)).toEqual([429])
    expect(await statuses(gateway, second, 2)).toEqual([200, 429])
  })

  test('by actor: whoever acts for nobody else is not counted', async () => {
    const gateway = await start({ by: 'actor', requests: 1, per: '1m' })
    expect(await statuses(gateway, await tokenOf(gateway, {}), 3)).toEqual([200, 200, 200])
  })

  test('by client: tokens that name none are counted together', async () => {
    const gateway = await start({ by: 'client', requests: 1, per: '1m' })
    expect(await statuses(gateway, await tokenOf(gateway, { sub: 'u1' }), 1)).toEqual([200])
    expect(await statuses(gateway, await tokenOf(gateway, { sub: 'u2' }), 1)).toEqual([429])
  })

  test('by address: also those whose token is not good, and only as trusted proxies tell it', async () => {
    const gateway = await start(
      { by: 'address', requests: 2, per: '1m' },
      { config: { trustedProxies: ['127.0.0.1'] } },
    )
    const from = async (address: string) =>
      (
        await gateway.call('/orders/1', {
          token: 'guessed',
          headers: { 'x-forwarded-for': address, authorization: 'Bearer guessed' },
        })
      ).status
    expect([await from('192.0.2.1'), await from('192.0.2.1'), await from('192.0.2.1')]).toEqual([401, 401, 429])
    expect([await from('1.1.1.1, 192.0.2.1'), await from('192.0.2.2')]).toEqual([429, 401])
    expect([await from('2001:db8::1'), await from('2001:db8::2'), await from('2001:db8::3')]).toEqual([401, 401, 429])
  })

  test('several limits hold together, and one that refuses takes nothing from the others', async () => {
    const gateway = await start([
      { by: 'subject', requests: 3, per: '1m' },
      { by: 'subject', name: 'hourly', requests: 100, per: '1h', burst: 1 },
    ])
    const token = await tokenOf(gateway, {})
    const first = await gateway.call('/orders/1', { token })
    expect(first.headers.get('ratelimit-policy')).toBe('"subject";q=3;w=60, "hourly";q=100;w=3600')
    const refused = await gateway.call('/orders/1', { token })
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '36'])
    // Only the first request was taken from it.
    expect(refused.headers.get('ratelimit')).toBe('"subject";r=1;t=40, "hourly";r=0;t=36')
  })

  test('what a policy refuses was counted', async () => {
    const gateway = await start({ by: 'subject', requests: 1, per: '1m' })
    expect(await statuses(gateway, await tokenOf(gateway, { scope: '' }), 2)).toEqual([401, 429])
  })
})
