import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { protect } from '../../../gateway/express.ts'
import { silentLogger } from '../../../platform/logger.ts'
import type { PolicyInput } from '../../../policies/decide.ts'
import { askForDecision } from '../../support/forward-auth.ts'
import { orders, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { recordingPolicies } from '../../support/recording-policies.ts'

/**
 * RFC 6750 §2.3 lets a client put its token into the query, where logs keep it. Here that is no token, and nobody
 * behind gets one.
 */

let gateway: TestGateway
let token: string
const asked: PolicyInput[] = []
beforeAll(async () => {
  gateway = await startTestGateway({
    policies: await recordingPolicies((input) => asked.push(input)),
    config: () => ({
      trustedProxies: ['127.0.0.1'],
      forwardAuth: { dialect: 'traefik' },
      routes: [
        { id: 'orders', path: '/orders/**', audience: [orders], scopes: ['read:orders'], upstream: 'orders' },
        { id: 'public', path: '/public/**', auth: 'none', upstream: 'orders' },
      ],
    }),
  })
  token = await gateway.issuer.sign({ scope: 'read:orders' })
})
afterAll(() => gateway.close())
beforeEach(() => {
  gateway.upstream.seen.length = 0
  asked.length = 0
})

const ask = async (target: string, headers: Record<string, string> = {}) => {
  const answer = await fetch(gateway.url + target, { headers })
  return answer.status === 200 ? 200 : [answer.status, ((await answer.json()) as { code: string }).code]
}
const bearer = () => ({ authorization: `Bearer ${token}` })

const spellings = [
  'access_token=x',
  'access_token',
  'a=1&access_token=x&b=2',
  'access%5Ftoken=x',
  '%61ccess_token=x',
  'Access_Token=x',
  'access.token=x',
  'access+token=x',
  'access_token%5B%5D=x',
  'access_token%5Ba%5D=x',
  'a=1;access_token=x',
  'a=1;?access_token=x',
  // PHP: blanks in front, one open bracket, the end of a string in C.
  '%20+access_token=x',
  'access%5Btoken=x',
  'access_token%00=x',
  'access_token%00a=x',
  // qs (Express) and Rack.
  '%5Baccess_token%5D=x',
  '%5B%5Baccess_token=x',
  'access_token%5D=x',
  // URLSearchParams and ASP.NET.
  '?access_token=x',
  '%3Faccess_token=x',
  'ACCE%C5%BFS_TO%E2%84%AAEN=x',
]

describe('beside a token in the header', () => {
  test.each(spellings)('%s is refused', async (query) => {
    expect(await ask(`/orders/1?${query}`, bearer())).toEqual([400, 'invalid_request'])
    expect(await ask(`/public/1?${query}`, { authorization: `DPoP ${token}` })).toEqual([400, 'invalid_request'])
    expect((await askForDecision(gateway, `/orders/1?${query}`, bearer())).status).toBe(400)
    expect(gateway.upstream.seen).toEqual([])
  })

  test('what only looks like one is a parameter like any other', async () => {
    const query =
      '?access_tokens=1&my_access_token=2&a=access_token&token=3&accesstoken=4&b=/?access_token=5&access-token=6&c%5Baccess_token%5D=7'
    expect(await ask(`/orders/1${query}`, bearer())).toBe(200)
    expect(gateway.upstream.seen[0]!.url).toBe(`/orders/1${query}`)
  })
})

describe('alone', () => {
  test.each(spellings)('%s is no token', async (query) => {
    expect(await ask(`/orders/1?${query.replace('=x', `=${token}`)}`)).toEqual([401, 'token_missing'])
    expect(await ask(`/orders/1?${query}`, { authorization: 'Basic YTpi' })).toEqual([401, 'token_missing'])
    expect((await askForDecision(gateway, `/orders/1?${query}`)).status).toBe(401)
  })

  test.each<[string, string]>([
    ['?access_token=x', ''],
    ['?a=%41&access_token=x&b=+1', '?a=%41&b=+1'],
    ['?access_token=x&access_token=y&', '?'],
    ['?a&&access_token=x', '?a&'],
    ['?a=1;access_token=x;b=2&c', '?a=1;b=2&c'],
    ['?access%5ftoken=x&a', '?a'],
    ['??access_token=x&a', '?a'],
    ['?%5Baccess_token%5D=x&access%5Btoken=y&access_token%00=z&a', '?a'],
  ])('never goes on, to the upstream or to the policy: %s', async (query, left) => {
    expect(await ask(`/public/1${query}`)).toBe(200)
    expect(gateway.upstream.seen[0]!.url).toBe(`/public/1${left}`)
    expect(Object.keys(asked[0]!.request.query).join()).not.toMatch(/access/i)
  })

  test('another proxy, which would send it on, gets no yes', async () => {
    expect((await askForDecision(gateway, '/public/1?access_token=x')).status).toBe(400)
    expect((await askForDecision(gateway, '/public/1?a=x')).status).toBe(200)
  })
})

test('handlers behind protect() do not see it either', async () => {
  const guard = protect({
    issuer: gateway.issuer.issuer,
    audience: orders,
    scopes: ['read:orders'],
    logger: silentLogger,
  })
  const seen: unknown[] = []
  const app = express().use('/orders', guard, ({ url, originalUrl, query }, response) => {
    seen.push({ url, originalUrl, query })
    response.end()
  })
  const server = app.listen(0, '127.0.0.1')
  onTestFinished(async () => {
    server.close()
    await guard.close()
  })
  await once(server, 'listening')
  await guard.ready
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/orders/1`
  expect((await fetch(`${url}?a=1&access_token=x`, { headers: bearer() })).status).toBe(400)
  expect((await fetch(`${url}?a=1&access_token=${token}`)).status).toBe(401)
  expect(seen).toEqual([])
  expect((await fetch(`${url}?a=1`, { headers: bearer() })).status).toBe(200)
  expect(seen).toEqual([{ url: '/1?a=1', originalUrl: '/orders/1?a=1', query: { a: '1' } }])
})
