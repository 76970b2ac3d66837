import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRemoteJWKSet, exportJWK, generateKeyPair, jwtVerify } from 'jose'
import { afterEach, describe, expect, test } from 'vitest'
import { orders, sendRaw, startTestGateway, type TestGateway } from '../support/gateway.ts'

const cleanup: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

type Dialect = 'nginx' | 'traefik' | 'caddy' | 'envoy'

const route = { audience: [orders], scopes: ['read:orders'] }
const routes = [
  { ...route, id: 'read', path: '/orders/{id}', methods: ['GET'], policyHeaders: ['accept-language'] },
  { ...route, id: 'hidden', path: '/hidden', forwardAuthorization: false },
  { id: 'named', hosts: ['other.test'], path: '/who', auth: 'none' },
  { id: 'rest', path: '/**', auth: 'none', upstream: 'orders' },
]

const start = async (dialect: Dialect, { trusted = true } = {}): Promise<TestGateway> => {
  const gateway = await startTestGateway({
    config: () => ({
      trustedProxies: [trusted ? '127.0.0.1' : '192.0.2.1'],
      forwardAuth: { path: '/.surrogate/auth', dialect },
      routes,
    }),
  })
  cleanup.push(gateway.close)
  return gateway
}

interface Asked {
  method?: string
  uri?: string
  host?: string
  fields?: readonly string[]
  token?: string | undefined
}

/** What each proxy sends when it asks about a request. */
const wire: Record<Dialect, (asked: Required<Omit<Asked, 'token'>>) => string[]> = {
  nginx: ({ method, uri, host, fields }) => [
    'GET /.surrogate/auth HTTP/1.1',
    `host: ${host}`,
    `x-original-method: ${method}`,
    `x-original-uri: ${uri}`,
    'x-forwarded-proto: https',
    ...fields,
  ],
  traefik: (asked) => forwarded(asked),
  caddy: (asked) => forwarded(asked),
  envoy: ({ method, uri, host, fields }) => [
    `${method} /.surrogate/auth${uri} HTTP/1.1`,
    `host: ${host}`,
    'content-length: 0',
    'x-forwarded-proto: https',
    ...fields,
  ],
}
const forwarded = ({ method, uri, host, fields }: Required<Omit<Asked, 'token'>>) => [
  'GET /.surrogate/auth HTTP/1.1',
  'host: gateway.test:3000',
  `x-forwarded-method: ${method}`,
  `x-forwarded-uri: ${uri}`,
  `x-forwarded-host: ${host}`,
  'x-forwarded-proto: https',
  ...fields,
]

interface Answer {
  status: number
  headers: Record<string, string>
  body: { code?: string; reason?: string; status?: number }
}

/** A header without a value and one that is not there differ: so the answer is read as it stands. */
const send = async (gateway: TestGateway, lines: readonly string[]): Promise<Answer> => {
  const text = await sendRaw(gateway.port, [...lines, 'connection: close', '', ''].join('\r\n'))
  const [head, body = ''] = text.split('\r\n\r\n')
  const [status, ...fields] = head!.split('\r\n')
  return {
    status: Number(status!.split(' ')[1]),
    headers: Object.fromEntries(
      fields.map((line) => [line.split(':')[0]!.toLowerCase(), line.replace(/^[^:]*: ?/, '')]),
    ),
    body: body.startsWith('{') ? JSON.parse(body) : {},
  }
}

const ask = async (gateway: TestGateway, dialect: Dialect, asked: Asked = {}): Promise<Answer> => {
  const { method = 'GET', uri = '/orders/42', host = 'api.test', fields = [] } = asked
  const token = 'token' in asked ? asked.token : await gateway.issuer.sign({ scope: 'read:orders', client_id: 'c1' })
  const bearer = token === undefined ? [] : [`authorization: Bearer ${token}`]
  return send(gateway, wire[dialect]({ method, uri, host, fields: [...bearer, ...fields] }))
}

describe.each(['nginx', 'traefik', 'caddy', 'envoy'] as const)('%s', (dialect) => {
  test('a yes names who is asking in every field, empty ones too, and nothing goes upstream', async () => {
    const gateway = await start(dialect)
    const token = await gateway.issuer.sign({ scope: 'read:orders', client_id: 'c1', act: { sub: 'agent' } })
    const { status, headers } = await ask(gateway, dialect, {
      token,
      fields: ['x-auth-sid: forged', 'x_auth_sub: root'],
    })
    expect(status).toBe(200)
    expect(headers).toMatchObject({
      'x-auth-sub': 'u1',
      'x-auth-act': 'agent',
      'x-auth-act-chain': 'agent',
      'x-auth-scope': 'read:orders',
      'x-auth-client-id': 'c1',
      'x-auth-sid': '',
      'x-auth-assertion': '',
      authorization: `Bearer ${token}`,
      'cache-control': 'no-store',
      'content-length': '0',
    })
    expect(gateway.upstream.seen).toEqual([])
  })

  test('the method, host and path asked about decide, not those of the question', async () => {
    const gateway = await start(dialect)
    const answers = [
      await ask(gateway, dialect, { method: 'DELETE', uri: '/orders/42', token: undefined }),
      await ask(gateway, dialect, { uri: '/who', host: 'OTHER.test', token: undefined }),
      await ask(gateway, dialect, { uri: '/orders/%34%32?x=1', token: undefined }),
      await ask(gateway, dialect, { uri: '/hidden' }),
    ]
    // DELETE /orders/42 is no business of the route for GET: the public one takes it.
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 401, 200])
    expect(answers[2]!.headers['www-authenticate']).toMatch(/^Bearer/)
    expect(answers[3]!.headers).toMatchObject({ authorization: '', 'x-auth-sub': 'u1' })
  })

  test.each([
    ['a dot segment', '/orders/../admin'],
    ['an encoded slash', '/orders%2fadmin'],
    ['an empty segment', '/orders//42'],
    ['a backslash', '/orders\\42'],
    ['a fragment', '/orders/42#x'],
    ['another form of target', 'http://api.test/orders/42'],
  ])('%s in what is asked about is refused', async (_what, uri) => {
    const gateway = await start(dialect)
    const { status, headers, body } = await ask(gateway, dialect, { uri })
    if (dialect === 'nginx') {
      expect({ status, told: headers['x-auth-status'], reason: headers['x-auth-reason'] }).toEqual({
        status: 403,
        told: '400',
        reason: 'invalid_request',
      })
    } else expect({ status, code: body.code }).toEqual({ status: 400, code: 'invalid_request' })
  })

  test('whoever is no trusted proxy gets no decision', async () => {
    const gateway = await start(dialect, { trusted: false })
    const { status, headers, body } = await ask(gateway, dialect)
    expect({ status, code: body.code }).toEqual({ status: dialect === 'nginx' ? 403 : 404, code: 'not_found' })
    expect(headers).not.toHaveProperty('x-auth-sub')
    expect(gateway.upstream.seen).toEqual([])
  })
})

test.each<[Dialect, string[]]>([
  ['nginx', ['x-original-method', 'x-original-uri', 'x-forwarded-proto', 'host']],
  ['traefik', ['x-forwarded-method', 'x-forwarded-uri', 'x-forwarded-host', 'x-forwarded-proto']],
  ['caddy', ['x-forwarded-method', 'x-forwarded-uri', 'x-forwarded-host', 'x-forwarded-proto']],
  ['envoy', ['host']],
])('%s: a field that says what is asked about must be there once', async (dialect, names) => {
  const gateway = await start(dialect)
  const lines = wire[dialect]({ method: 'GET', uri: '/public', host: 'api.test', fields: [] })
  expect((await send(gateway, lines)).status).toBe(200)
  for (const name of names) {
    const own = lines.find((line) => line.startsWith(`${name}:`))!
    const without = await send(
      gateway,
      lines.filter((line) => line !== own),
    )
    const twice = await send(gateway, [...lines, own])
    expect({ name, answers: [without.body.code, twice.body.code] }).toEqual({
      name,
      answers: ['invalid_request', 'invalid_request'],
    })
  }
})

test('nginx: every refusal is 401 or 403, and tells the real status and reason beside it', async () => {
  const gateway = await start('nginx')
  const powerless = await gateway.issuer.sign({ scope: 'other' })
  const answers = [
    await ask(gateway, 'nginx', { token: undefined }),
    await ask(gateway, 'nginx', { token: powerless }),
    await ask(gateway, 'nginx', { method: 'get' }),
  ]
  expect(answers.map(({ status, headers }) => [status, headers['x-auth-status'], headers['x-auth-reason']])).toEqual([
    [401, '401', 'token_missing'],
    [401, '401', 'insufficient_scope'],
    [403, '400', 'invalid_request'],
  ])
})

test("nginx: the client's X-Forwarded-Host, which nginx passes on, does not choose the route", async () => {
  const gateway = await start('nginx')
  const { headers } = await ask(gateway, 'nginx', {
    uri: '/orders/42',
    host: 'api.test',
    fields: ['x-forwarded-host: other.test'],
    token: undefined,
  })
  expect(headers['x-auth-reason']).toBe('token_missing')
})

test('a route without an upstream is none for the proxy, and no other route takes its place', async () => {
  const gateway = await start('nginx')
  expect((await gateway.call('/orders/42')).status).toBe(404)
  expect((await gateway.call('/elsewhere')).status).toBe(200)
  expect(gateway.upstream.seen.map(({ url }) => url)).toEqual(['/elsewhere'])
})

test('the signed identity is in the answer where the upstream wants one', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'forward-auth-'))
  cleanup.push(() => rm(folder, { recursive: true }))
  const keyFile = join(folder, 'key.json')
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  await writeFile(keyFile, JSON.stringify(await exportJWK(privateKey)))
  const gateway = await startTestGateway({
    config: ({ upstream }) => ({
      trustedProxies: ['127.0.0.1'],
      forwardAuth: { dialect: 'nginx' },
      identity: { issuer: 'https://gateway.test', keyFile },
      upstreams: { orders: { url: upstream.url, identityAudience: 'https://orders.internal' } },
      routes: [{ id: 'orders', path: '/orders/**', audience: [orders], upstream: 'orders' }],
    }),
  })
  cleanup.push(gateway.close)
  const { headers } = await ask(gateway, 'nginx')
  const keys = createRemoteJWKSet(new URL(`${gateway.url}/.well-known/surrogate/jwks.json`))
  const { payload } = await jwtVerify(headers['x-auth-assertion']!, keys, { audience: 'https://orders.internal' })
  expect(payload).toMatchObject({ sub: 'u1', route: 'orders' })
})

test('a question that asks for another protocol is answered like any other', async () => {
  const gateway = await start('caddy')
  const fields = ['connection: upgrade', 'upgrade: websocket', 'sec-websocket-version: 13', 'sec-websocket-key: eA==']
  const { status, headers } = await ask(gateway, 'caddy', { fields })
  expect([status, headers['x-auth-sub']]).toEqual([200, 'u1'])
})
