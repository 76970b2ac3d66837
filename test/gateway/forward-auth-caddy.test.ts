import { afterEach, describe, expect, test } from 'vitest'
import { caddy, startCaddy } from '../support/caddy.ts'
import { documented, startForwardAuth } from '../support/forward-auth.ts'
import { sendRaw } from '../support/gateway.ts'

/** The Caddyfile that the documentation shows, word for word but for addresses. */

const cleanup: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const start = async () => {
  const parts = await startForwardAuth('caddy', async ({ proxy, gateway, upstream }) => {
    const site = await documented('caddyfile', [
      ['api.example.test {', `http://127.0.0.1:${proxy} {`],
      ['10.0.0.2:3000', `127.0.0.1:${gateway}`],
      ['10.0.0.3:3002', `127.0.0.1:${upstream}`],
    ])
    return startCaddy(site)
  })
  cleanup.push(parts.close)
  return parts
}

describe.skipIf(caddy === undefined)('Caddy with the documented configuration', () => {
  test('forwards what the gateway allows, with an identity that cannot be forged', async () => {
    const { call, token, upstream } = await start()
    const response = await call('/orders/42?x=1', {
      method: 'POST',
      body: 'of the client',
      headers: {
        'X-Auth-Sub': 'root',
        'x-auth-sid': 'forged',
        X_Auth_Act: 'root',
        'X-Forwarded-Uri': '/public/x',
        'X-Forwarded-Method': 'GET',
      },
    })
    expect(response.status).toBe(200)
    const [{ url, method, body, headers }] = upstream.seen as [(typeof upstream.seen)[0]]
    expect({ url, method, body }).toEqual({ url: '/orders/42?x=1', method: 'POST', body: 'of the client' })
    expect(headers).toMatchObject({
      authorization: `Bearer ${token}`,
      'x-auth-sub': 'u1',
      'x-auth-act': 'agent',
      'x-auth-act-chain': 'agent',
      'x-auth-scope': 'read:orders',
      'x-auth-client-id': 'c1',
      'x-auth-sid': '',
    })
    expect(Object.keys(headers)).not.toEqual(expect.arrayContaining(['x_auth_act']))
  })

  test('who acts for the user cannot be taken from the request by listing the field in Connection', async () => {
    const { port, token, upstream } = await start()
    const answer = await sendRaw(
      port,
      `GET /orders/1 HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer ${token}\r\nconnection: close, X-Auth-Act\r\n\r\n`,
    )
    expect(answer).toMatch(/^HTTP\/1\.1 400 /)
    expect(upstream.seen).toEqual([])
  })

  test('keeps the token from an upstream that must not have it, and forged identities from public routes', async () => {
    const { call, upstream } = await start()
    await call('/hidden')
    await call('/public/x', { headers: { 'x-auth-sub': 'root' } })
    expect(upstream.seen.map(({ headers }) => [headers['authorization'], headers['x-auth-sub']])).toEqual([
      ['', 'u1'],
      [expect.stringMatching(/^Bearer /), ''],
    ])
  })

  test('answers refusals with the status, challenge and reason of the gateway', async () => {
    const { call, url, upstream } = await start()
    const answers = [await fetch(`${url}/orders/1`), await call('/nowhere'), await call('/public/a%2fb')]
    const seen = await Promise.all(
      answers.map(async (one) => [one.status, ((await one.json()) as { code: string }).code]),
    )
    expect(seen).toEqual([
      [401, 'token_missing'],
      [404, 'not_found'],
      [400, 'invalid_request'],
    ])
    expect(answers[0]!.headers.get('www-authenticate')).toMatch(/^Bearer/)
    expect(upstream.seen).toEqual([])
  })

  test.each(['/public/../orders/1', '/public/%2e%2e/orders/1', '/public//x', '/public/x%00y'])(
    '%s never reaches the upstream, whatever Caddy makes of it',
    async (path) => {
      const { port, upstream } = await start()
      const answer = await sendRaw(port, `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nconnection: close\r\n\r\n`)
      expect(answer).toMatch(/^HTTP\/1\.1 40[0134] /)
      expect(upstream.seen).toEqual([])
    },
  )

  test('refuses everything when the gateway cannot be reached', async () => {
    const { call, gateway, upstream } = await start()
    expect((await call('/public/x')).status).toBe(200)
    await gateway.close()
    expect((await call('/public/x')).status).toBe(502)
    expect(upstream.seen).toHaveLength(1)
  })
})
