import { afterEach, describe, expect, test } from 'vitest'
import { documented, startForwardAuth } from '../support/forward-auth.ts'
import { sendRaw } from '../support/gateway.ts'
import { nginx, startNginx } from '../support/nginx.ts'

/** The configuration of nginx that the documentation shows, word for word but for addresses. */

const cleanup: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const start = async () => {
  const parts = await startForwardAuth('nginx', async ({ proxy, gateway, upstream }) => {
    const blocks = await documented('nginx', [
      ['listen 8080;', `listen 127.0.0.1:${proxy};`],
      ['server 127.0.0.1:3000;', `server 127.0.0.1:${gateway};`],
      ['server 127.0.0.1:3002;', `server 127.0.0.1:${upstream};`],
    ])
    return startNginx(blocks, proxy)
  })
  cleanup.push(parts.close)
  return parts
}

describe.skipIf(nginx === undefined)('nginx with the documented configuration', () => {
  test('forwards what the gateway allows, with an identity that cannot be forged', async () => {
    const { call, token, upstream } = await start()
    const response = await call('/orders/%34%32?x=1', {
      method: 'POST',
      body: 'of the client',
      headers: { 'X-Auth-Sub': 'root', 'x-auth-sid': 'forged', x_auth_act: 'root', 'X-Original-URI': '/public/x' },
    })
    expect(response.status).toBe(200)
    expect(upstream.seen).toHaveLength(1)
    const [{ url, method, body, headers }] = upstream.seen as [(typeof upstream.seen)[0]]
    expect({ url, method, body }).toEqual({ url: '/orders/%34%32?x=1', method: 'POST', body: 'of the client' })
    expect(headers).toMatchObject({
      authorization: `Bearer ${token}`,
      'x-auth-sub': 'u1',
      'x-auth-act': 'agent',
      'x-auth-act-chain': 'agent',
      'x-auth-scope': 'read:orders',
      'x-auth-client-id': 'c1',
      'x-request-id': expect.stringMatching(/^[0-9a-f]{32}$/),
    })
    expect(Object.keys(headers)).not.toEqual(expect.arrayContaining(['x-auth-sid']))
    expect(Object.keys(headers)).not.toEqual(expect.arrayContaining(['x_auth_act']))
  })

  test('who acts for the user cannot be taken from the request by listing the field in Connection', async () => {
    const { port, token, upstream } = await start()
    await sendRaw(
      port,
      `GET /orders/1 HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${token}\r\nconnection: close, X-Auth-Act\r\n\r\n`,
    )
    const [{ headers }] = upstream.seen as [(typeof upstream.seen)[0]]
    expect(headers).toMatchObject({ 'x-auth-sub': 'u1', 'x-auth-act': 'agent' })
    expect(headers['connection'] ?? '').not.toMatch(/auth/i)
  })

  test('keeps the token from an upstream that must not have it, and forged identities from public routes', async () => {
    const { call, upstream } = await start()
    await call('/hidden')
    await call('/public/x', { headers: { 'x-auth-sub': 'root' } })
    expect(upstream.seen.map(({ headers }) => [headers['authorization'], headers['x-auth-sub']])).toEqual([
      [undefined, 'u1'],
      [expect.stringMatching(/^Bearer /), undefined],
    ])
  })

  test('answers refusals with the status, challenge and reason of the gateway', async () => {
    const { call, url, gateway, upstream } = await start()
    const powerless = await gateway.issuer.sign({ scope: 'other' })
    const answers = [
      await fetch(`${url}/orders/1`),
      await call('/orders/1', { headers: { authorization: `Bearer ${powerless}` } }),
      await call('/nowhere'),
      await call('/public/a%2fb'),
    ]
    expect(answers.map(({ status, headers }) => [status, headers.get('www-authenticate')?.split(',')[0]])).toEqual([
      [401, expect.stringMatching(/^Bearer/)],
      [401, 'Bearer error="insufficient_scope"'],
      [404, undefined],
      [400, undefined],
    ])
    expect(await answers[2]!.json()).toEqual({ status: 404, code: 'not_found' })
    expect(await answers[3]!.json()).toEqual({ status: 400, code: 'invalid_request' })
    expect(upstream.seen).toEqual([])
  })

  test.each(['/public/../orders/1', '/public/%2e%2e/orders/1', '/public//x', '/public/x\\y', '/public/x%00y'])(
    '%s never reaches the upstream, whatever nginx makes of it',
    async (path) => {
      const { port, upstream } = await start()
      const answer = await sendRaw(port, `GET ${path} HTTP/1.1\r\nhost: api.test\r\nconnection: close\r\n\r\n`)
      expect(answer).toMatch(/^HTTP\/1\.1 40[0134] /)
      expect(upstream.seen).toEqual([])
    },
  )

  test('the path of forward-auth itself is not reachable from outside', async () => {
    const { call } = await start()
    expect((await call('/.surrogate/auth', { headers: { 'x-original-uri': '/public/x' } })).status).toBe(404)
  })

  test('refuses everything when the gateway cannot be reached', async () => {
    const { call, gateway, upstream } = await start()
    expect((await call('/public/x')).status).toBe(200)
    await gateway.close()
    expect((await call('/public/x')).status).toBe(500)
    expect(upstream.seen).toHaveLength(1)
  })
})
