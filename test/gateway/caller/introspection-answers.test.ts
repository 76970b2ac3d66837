import type { RequestListener } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { orders } from '../../support/gateway.ts'
import { type IntrospectingGateway, newToken, secret, startIntrospecting } from './introspection-gateway.ts'

/** Answers about opaque tokens that are wrong, missing, late or endless: nobody gets in, and nothing is told. */

let told: string[] = []
afterEach(() => {
  told = []
})

const text =
  (body: string, type = 'application/json', status = 200): RequestListener =>
  (_request, response) =>
    void response.writeHead(status, { 'content-type': type }).end(body)

const active = (members: string) => text(`{"active":true,"sub":"u1","aud":"${orders}",${members}}`)
const now = Math.floor(Date.now() / 1000)

/** Neither logs nor answers nor metrics may hold a token or the gateway's secret. */
const expectNoSecrets = async (gateway: IntrospectingGateway, token: string) => {
  const { text: metrics } = await gateway.metrics.render()
  const all = gateway.logged() + metrics + told.join('')
  expect(all).not.toContain(token)
  expect(all).not.toContain(secret)
  expect(all).not.toContain(Buffer.from(`gateway:${secret}`).toString('base64'))
}

describe('an answer that no issuer should give is 503, told to operators, and asked for again', () => {
  test.each<[string, RequestListener, RegExp]>([
    ['breaks the connection', (request) => void request.socket.destroy(), /cannot be asked|UND_ERR|ECONNRESET/],
    ['fails', text('{}', 'application/json', 500), /it answered 500/],
    ['refuses the client', text('{"error":"invalid_client"}', 'application/json', 401), /does not accept the client/],
    ['lets the client not ask', text('{}', 'application/json', 403), /does not let the client ask/],
    ['is not there', text('<h1>Not found</h1>', 'text/html', 404), /no introspection endpoint/],
    [
      'redirects',
      (_request, response) => void response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end(),
      /it answered 307/,
    ],
    ['is a page', text('<html>', 'text/html'), /its answer is not JSON/],
    ['is JSON as text', text('{"active":true}', 'text/plain'), /its answer is not JSON/],
    ['is no JSON', text('<html>'), /unambiguous JSON object/],
    ['is a list', text('[{"active":true}]'), /unambiguous JSON object/],
    ['is empty', text(''), /unambiguous JSON object/],
    ['says it twice', text(`{"active":false,"active":true,"sub":"u1","aud":"${orders}"}`), /unambiguous JSON object/],
    ['nests', active(`"x":${'['.repeat(40)}${']'.repeat(40)}`), /unambiguous JSON object/],
    [
      'is not UTF-8',
      (_, response) => {
        response.writeHead(200, { 'content-type': 'application/json' }).end(Buffer.from([0x7b, 0xff, 0x7d]))
      },
      /not UTF-8/,
    ],
    ['says active in words', text('{"active":"true"}'), /whether the token is active/],
    ['says nothing of active', text(`{"sub":"u1","aud":"${orders}"}`), /whether the token is active/],
    ['is of another issuer', active('"iss":"https://other.test"'), /names another issuer/],
    ['has a list of scopes', active('"scope":["read:orders"]'), /scope is not a string/],
    ['has an absurd exp', active('"exp":1e300'), /no usable exp/],
    ['has an exp in words', active('"exp":"tomorrow"'), /no usable exp/],
    ['has an iat in words', active('"iat":"today"'), /no usable exp and iat/],
    ['has an nbf in words', active('"nbf":"today"'), /nbf/],
    ['ends before it begins', active(`"iat":${now},"exp":${now - 10}`), /expires before/],
    ['has an act that is no object', active('"act":"a1"'), /act/],
    ['has an aud of numbers', text('{"active":true,"sub":"u1","aud":[1]}'), /aud/],
    ['has a sub of numbers', text(`{"active":true,"sub":1,"aud":"${orders}"}`), /no subject/],
    ['has a kind that is no word', active('"token_type":["Bearer"]'), /token_type of its answer/],
    ['is larger than it may be', active(`"x":"${'x'.repeat(70_000)}"`), /too large/],
    [
      'does not end',
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' })
        const more = () => {
          if (response.destroyed) return
          response.write(' '.repeat(16_384))
          setImmediate(more)
        }
        more()
      },
      /too large/,
    ],
  ])('%s', async (_, listener, reason) => {
    const gateway = await startIntrospecting()
    const token = gateway.issue()
    gateway.endpoint.answer = listener
    const answer = await gateway.ask('/orders/1', token)
    told.push(JSON.stringify(answer))
    expect(answer).toMatchObject({
      status: 503,
      challenge: null,
      retryAfter: '1',
      body: { code: 'issuer_unavailable' },
    })
    expect(gateway.upstream.seen).toEqual([])
    expect(gateway.logged()).toMatch(new RegExp(`"level":(?:50|"error").*${gateway.issuer.issuer}`))
    expect(gateway.logged()).toMatch(reason)
    expect((await gateway.health.ready()).checks[`gateway introspection ${gateway.issuer.issuer}`]).toEqual({
      ok: true,
      detail: expect.stringMatching(reason),
    })
    await expectNoSecrets(gateway, token)
    gateway.endpoint.answer = undefined
    expect((await gateway.ask('/orders/1', token)).status).toBe(200)
  })

  test('does not come', async () => {
    const gateway = await startIntrospecting()
    const token = gateway.issue()
    const release = gateway.endpoint.hold()
    const answer = await gateway.ask('/orders/1', token)
    expect(answer).toMatchObject({ status: 503, retryAfter: '1', body: { code: 'issuer_unavailable' } })
    expect(gateway.logged()).toContain('it did not answer within 5000 ms')
    release()
    expect((await gateway.ask('/orders/1', token)).status).toBe(200)
  })

  test('is down, and comes back', async () => {
    const gateway = await startIntrospecting()
    const known = gateway.issue()
    expect((await gateway.ask('/orders/1', known)).status).toBe(200)
    const token = gateway.issue()
    await gateway.endpoint.close()
    expect((await gateway.ask('/orders/1', token)).status).toBe(503)
    // What is known serves until its minute is over, and then no longer.
    expect((await gateway.ask('/orders/1', known)).status).toBe(200)
    gateway.later(61_000)
    expect((await gateway.ask('/orders/1', known)).status).toBe(503)
    await expectNoSecrets(gateway, token)
  })
})

describe('a token that is active and good for something else is 401', () => {
  test.each<[string, object, RegExp]>([
    ['names no audience', { aud: undefined }, /does not say for which audience/],
    ['has an empty list of them', { aud: [] }, /does not say for which audience/],
    ['is a refresh token', { token_type: 'refresh_token' }, /not an access token/],
    ['is a refresh token of Hydra', { token_use: 'refresh_token' }, /not an access token/],
    ['names neither user nor client', { sub: undefined, client_id: undefined }, /whose token it is/],
    ["is a user's whose id is not told", { sub: undefined, username: 'alice' }, /whose token it is/],
    ['is bound to a key that is not told', { token_type: 'DPoP' }, /to which key/],
    ['is bound to no key of a key', { token_type: 'DPoP', cnf: {} }, /to which key/],
    ['has expired', { iat: now - 100, exp: now - 50 }, /has expired/],
    ['is for later', { nbf: now + 1_800 }, /not valid yet/],
    ['was issued in the future', { iat: now + 1_800 }, /not valid yet/],
  ])('%s', async (_, members, reason) => {
    const gateway = await startIntrospecting()
    const token = gateway.issue(members)
    const answer = await gateway.ask('/orders/1', token)
    expect(answer).toMatchObject({
      status: 401,
      challenge: expect.stringContaining('error="invalid_token"'),
      body: { code: 'invalid_token', detail: expect.stringMatching(reason) },
    })
    expect(gateway.upstream.seen).toEqual([])
    expect(gateway.logged()).toMatch(reason)
    await expectNoSecrets(gateway, token)
    // Remembered as refused.
    expect((await gateway.ask('/orders/1', token)).status).toBe(401)
    expect(gateway.endpoint.asked).toHaveLength(1)
  })
})

test('what the question has settled may be absent: the issuer, times, the kind, and the user of a client', async () => {
  const gateway = await startIntrospecting()
  const bare = { iss: undefined, iat: undefined, exp: undefined, token_type: undefined, sub: undefined }
  const token = gateway.issue(bare)
  expect((await gateway.ask('/orders/1', token)).status).toBe(200)
  expect(gateway.upstream.seen[0]!.headers).toMatchObject({ 'x-auth-sub': 'c1', 'x-auth-client-id': 'c1' })
  gateway.later(61_000)
  expect((await gateway.ask('/orders/1', token)).status).toBe(200)
  expect(gateway.endpoint.asked).toHaveLength(2)
})

test('a flood of unknown tokens costs no known one its place, and waits where it comes from', async () => {
  const gateway = await startIntrospecting({ config: { limits: { refusedTokens: 1 } } })
  const known = gateway.issue()
  expect((await gateway.ask('/orders/1', known)).status).toBe(200)
  const flood = Array.from({ length: 200 }, () => gateway.ask('/orders/1', newToken()))
  expect((await gateway.ask('/orders/1', known)).status).toBe(200)
  expect(new Set((await Promise.all(flood)).map(({ status }) => status))).toEqual(new Set([401]))
  const { text: metrics } = await gateway.metrics.render()
  expect(Number(/refusals_held_total (\d+)/.exec(metrics)?.[1])).toBeGreaterThan(100)
  expect(metrics).toContain(
    `surrogate_gateway_introspections_total{issuer="${gateway.issuer.issuer}",outcome="inactive"} 200`,
  )
  gateway.endpoint.answer = (request) => void request.socket.destroy()
  expect((await gateway.ask('/orders/1', known)).status).toBe(200)
})
