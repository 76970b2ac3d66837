import { readFile } from 'node:fs/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { caddy, startCaddy } from '../support/caddy.ts'
import { freePort } from '../support/free-port.ts'
import { orders, sendRaw, startTestGateway } from '../support/gateway.ts'

/** The Caddyfile that the documentation shows, word for word but for addresses. */

const cleanup: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const documented = async (addresses: { listen: number; gateway: number; upstream: number }): Promise<string> => {
  const page = await readFile(new URL('../../docs/operators.md', import.meta.url), 'utf8')
  const site = /```caddyfile\n([\s\S]*?)```/.exec(page)![1]!
  const replaced = [
    ['api.example.test {', `http://127.0.0.1:${addresses.listen} {`],
    ['10.0.0.2:3000', `127.0.0.1:${addresses.gateway}`],
    ['10.0.0.3:3002', `127.0.0.1:${addresses.upstream}`],
  ] as const
  return replaced.reduce((text, [from, to]) => {
    expect(text.split(from)).toHaveLength(2)
    return text.replace(from, to)
  }, site)
}

const start = async () => {
  const gateway = await startTestGateway({
    config: () => ({
      trustedProxies: ['127.0.0.1'],
      forwardAuth: { dialect: 'caddy' },
      routes: [
        { id: 'read', path: '/orders/**', methods: ['GET', 'POST'], audience: [orders], scopes: ['read:orders'] },
        { id: 'hidden', path: '/hidden', audience: [orders], forwardAuthorization: false },
        { id: 'public', path: '/public/**', auth: 'none' },
      ],
    }),
  })
  cleanup.push(gateway.close)
  const port = await freePort()
  const { upstream } = gateway
  const { close } = await startCaddy(await documented({ listen: port, gateway: gateway.port, upstream: upstream.port }))
  cleanup.push(close)
  const token = await gateway.issuer.sign({ scope: 'read:orders', client_id: 'c1', act: { sub: 'agent' } })
  const call = (path: string, { headers, ...init }: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers: { authorization: `Bearer ${token}`, ...headers } })
  return { gateway, port, token, call, upstream }
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
    const { call, port, upstream } = await start()
    const answers = [
      await fetch(`http://127.0.0.1:${port}/orders/1`),
      await call('/nowhere'),
      await call('/public/a%2fb'),
    ]
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
