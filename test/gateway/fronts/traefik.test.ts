import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { audience, host, shippedFile } from '../../support/fronts.ts'
import { sendRaw, startTestGateway, type TestGateway } from '../../support/gateway.ts'

/**
 * deploy/in-front/traefik without a Traefik: the requests that its forwardAuth sends, by its source
 * (pkg/middlewares/auth/forward.go), to a gateway with the shipped file. It asks with GET and the client's fields
 * but for those of the connection, and says in X-Forwarded-* what it is about.
 */

let gateway: TestGateway
let token: string
beforeAll(async () => {
  const file = parse(await shippedFile('traefik/gateway-forward-auth.yaml'))
  gateway = await startTestGateway({
    config: ({ issuer }) => ({
      ...file,
      listen: { ...file.listen, port: 0 },
      issuers: [{ ...file.issuers[0], issuer: issuer.issuer }],
      upstreams: {},
    }),
  })
  token = await gateway.issuer.sign({ aud: audience, scope: 'read:orders', act: { sub: 'agent' } })
})
afterAll(() => gateway?.close())

const ask = async (method: string, uri: string, fields: readonly string[] = [`Authorization: Bearer ${token}`]) => {
  const lines = [
    'GET /.surrogate/auth HTTP/1.1',
    `Host: 127.0.0.1:${gateway.port}`,
    'User-Agent: curl/8.0',
    'Accept-Encoding: gzip',
    ...fields,
    'X-Forwarded-For: 203.0.113.9',
    `X-Forwarded-Host: ${host}`,
    `X-Forwarded-Method: ${method}`,
    'X-Forwarded-Port: 443',
    'X-Forwarded-Proto: https',
    'X-Forwarded-Server: traefik',
    `X-Forwarded-Uri: ${uri}`,
    'X-Real-Ip: 203.0.113.9',
    'Connection: close',
  ]
  const [head = '', body = ''] = (await sendRaw(gateway.port, `${lines.join('\r\n')}\r\n\r\n`)).split('\r\n\r\n')
  const [first = '', ...rest] = head.split('\r\n')
  const headers = Object.fromEntries(
    rest.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  )
  return { status: Number(first.split(' ')[1]), headers, body }
}

const forwardAuth = async () => parse(await shippedFile('traefik/forward-auth.yaml')).http

test('the answer has every field that Traefik takes from it, so that it keeps none of the client', async () => {
  const { middlewares } = await forwardAuth()
  const taken: string[] = middlewares.surrogate.forwardAuth.authResponseHeaders
  const { status, headers } = await ask('GET', '/orders/42?x=1')
  expect(status).toBe(200)
  expect(Object.keys(headers)).toEqual(expect.arrayContaining(taken.map((name) => name.toLowerCase())))
  expect(
    Object.keys(headers)
      .filter((name) => name.startsWith('x-auth-'))
      .sort(),
  ).toEqual(
    taken
      .map((name) => name.toLowerCase())
      .filter((name) => name.startsWith('x-auth-'))
      .sort(),
  )
  expect(headers).toMatchObject({ 'x-auth-sub': 'u1', 'x-auth-act': 'agent', 'x-auth-sid': '' })
})

test('refusals are the answer for the client, and none is taken for a yes', async () => {
  const answers = [
    await ask('GET', '/orders/1', []),
    await ask('POST', '/orders/1'),
    await ask('GET', '/nowhere'),
    await ask('GET', '/public/a%2fb'),
    await ask('GET', '/public/../orders/1', []),
    await ask('GET', '/public/%2e%2e/orders/1', []),
    await ask('GET', '//orders/1', []),
    await ask('GET', '/public/x;v=1', []),
  ]
  expect(answers.map(({ status, body }) => [status, JSON.parse(body).code])).toEqual([
    [401, 'token_missing'],
    [401, 'insufficient_scope'],
    [404, 'not_found'],
    [400, 'invalid_request'],
    [400, 'invalid_request'],
    [400, 'invalid_request'],
    [400, 'invalid_request'],
    [400, 'invalid_request'],
  ])
  expect(answers[0]!.headers['www-authenticate']).toMatch(/^Bearer/)
})

test('what a client says of the kind that Traefik says is a 400, not a choice', async () => {
  expect((await ask('GET', '/orders/1', ['X-Forwarded-Uri: /public/x'])).status).toBe(400)
  expect((await ask('GET', '/orders/1', ['X-Forwarded-Method: GET'])).status).toBe(400)
})

test('the shipped files name each other rightly', async () => {
  for (const name of ['proxy', 'forward-auth']) {
    const {
      routers,
      services,
      serversTransports,
      middlewares = {},
    } = parse(await shippedFile(`traefik/${name}.yaml`)).http
    for (const router of Object.values<Record<string, string>>(routers)) {
      expect(router['rule']).toContain('!PathPrefix(`/.surrogate/auth`)')
      expect(services).toHaveProperty(router['service']!)
      for (const middleware of router['middlewares'] ?? []) expect(middlewares).toHaveProperty(middleware)
    }
    for (const { loadBalancer } of Object.values<Record<string, Record<string, string>>>(services)) {
      expect(serversTransports).toHaveProperty(loadBalancer!['serversTransport']!)
    }
  }
  const { entryPoints } = parse(await shippedFile('traefik/traefik.yaml'))
  expect(Object.keys(entryPoints)).toEqual(['websecure'])
})
