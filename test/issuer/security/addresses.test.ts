import { describe, expect, onTestFinished, test } from 'vitest'
import { loadIssuerConfig } from '../../../issuer/config.ts'
import type { Visit } from '../../support/browser.ts'
import { createCodeFlow, parametersOf } from '../../support/code-flow.ts'
import { startTestIssuer } from '../../support/issuer.ts'

/** What whoever changes the address that a request says it comes from does not get around. */

const start = async (options: Parameters<typeof startTestIssuer>[0] = {}) => {
  const issuer = await startTestIssuer(options)
  onTestFinished(() => issuer.close())
  const flow = createCodeFlow(issuer)
  return { issuer, flow, client: await flow.createClient() }
}

describe('failed sign-ins are counted', () => {
  const attempts = async (trustedProxies: readonly string[]) => {
    const { issuer, flow, client } = await start({ config: { trustedProxies } })
    const person = await flow.createPerson()
    const attempt = async (forwarded: string, values: Record<string, string>): Promise<Visit> => {
      const browser = flow.browser()
      const headers = { 'x-forwarded-for': forwarded }
      const { location } = await browser.send(flow.authorizationUrl(client), { headers })
      const page = await browser.send(location!, { headers })
      return browser.submit(page, { ...flow.credentials(person), ...values }, { headers, follow: false })
    }
    let strangers = 0
    return {
      issuer,
      /** Of somebody else each time, so that only the address counts. */
      fail: async (forwarded: string) =>
        expect((await attempt(forwarded, { identifier: `nobody_${++strangers}`, password: 'wrong' })).status).toBe(400),
      signIn: (forwarded: string) => attempt(forwarded, {}),
      counts: async () =>
        (await issuer.sql<{ count: number }>('SELECT count FROM sign_in_failures WHERE count > 1 ORDER BY count')).map(
          ({ count }) => count,
        ),
      addresses: async () =>
        (await issuer.sql<{ address: string }>('SELECT DISTINCT address FROM interactions ORDER BY address')).map(
          ({ address }) => address,
        ),
    }
  }

  test('for the address that the connection has, whatever X-Forwarded-For says without a trusted proxy', async () => {
    const { issuer, fail, signIn, counts, addresses } = await attempts([])
    for (const forwarded of ['198.51.100.1', '198.51.100.2', '2001:db8::1', '127.0.0.1, 203.0.113.5'])
      await fail(forwarded)
    expect(await counts()).toEqual([4])
    expect(await addresses()).toEqual(['127.0.0.1'])
    await issuer.sql('UPDATE sign_in_failures SET count = 100 WHERE count = 4')
    for (const forwarded of ['198.51.100.9', '10.0.0.1']) expect((await signIn(forwarded)).status).toBe(429)
  })

  test('for one IPv6 network of /64 together, as a trusted proxy tells it, and not for the next one', async () => {
    const { issuer, fail, signIn, counts, addresses } = await attempts(['127.0.0.1'])
    const network = [
      '2001:db8:1:2::1',
      '2001:DB8:1:2:ffff:ffff:ffff:ffff',
      '2001:0db8:0001:0002:0:0:0:9',
      '2001:db8:1:3::7, 2001:db8:1:2::a',
    ]
    for (const forwarded of network) await fail(forwarded)
    await fail('2001:db8:1:3::1')
    expect(await counts()).toEqual([4])
    expect(await addresses()).toEqual(['2001:db8:1:2::/64', '2001:db8:1:3::/64'])
    await issuer.sql('UPDATE sign_in_failures SET count = 100 WHERE count = 4')
    expect((await signIn('2001:db8:1:2:dead:beef::1')).status).toBe(429)
    expect(parametersOf(await signIn('2001:db8:1:3::1'))).toHaveProperty('code')
  })
})

test('a thousand visitors without a session, from one address, leave no more than the default of open sign-ins', async () => {
  const { interactionsPerAddress: limit } = loadIssuerConfig({
    KEY_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString('base64'),
  })
  const { issuer, flow, client } = await start({ instances: 2, config: { interactionsPerAddress: limit } })
  const [visits, atOnce] = [1_000, 20]
  const url = flow.authorizationUrl(client).slice(issuer.baseUrl.length)
  const statuses = new Map<number, number>()
  let sent = 0
  const visit = async () => {
    for (let n = sent++; n < visits; n = sent++) {
      const headers = { 'x-forwarded-for': `198.51.${n >> 8}.${n & 255}` }
      const answer = await fetch(issuer.urls[n % 2] + url, { redirect: 'manual', headers })
      await answer.text()
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, visit))

  const [made] = await issuer.sql<{ interactions: number; sessions: number; stored: number }>(
    `SELECT (SELECT count(*)::integer FROM interactions) AS interactions,
       (SELECT count(*)::integer FROM sessions) AS sessions, (SELECT count(*)::integer FROM pushed_requests) AS stored`,
  )
  // What is counted at the same moment does not see each other.
  expect(made!.interactions).toBeGreaterThanOrEqual(limit)
  expect(made!.interactions).toBeLessThan(limit + atOnce)
  expect(made).toMatchObject({ sessions: 0, stored: 0 })
  expect(Object.fromEntries(statuses)).toEqual({ 303: made!.interactions, 429: visits - made!.interactions })
})
