import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { orders } from '../../support/gateway.ts'
import { type GatewayWorkers, startGatewayWorkers } from '../../support/gateway-workers.ts'
import { type IntrospectionEndpoint, startIntrospectionEndpoint } from '../../support/introspection-endpoint.ts'
import { startTokenIssuer, type TokenIssuer } from '../../support/token-issuer.ts'
import { until } from '../../support/until.ts'

/** Several workers ask about opaque tokens as one. */

const secret = 'secret-of-the-gateway'
/** Its keys; what it publishes of itself is `metadata`, where RFC 8414 has it and OpenID Connect does not. */
let issuer: TokenIssuer
let metadata: ReturnType<typeof createServer>
let iss = ''
let endpoint: IntrospectionEndpoint
let gateway: GatewayWorkers
let api: ReturnType<typeof createServer>
beforeAll(async () => {
  issuer = await startTokenIssuer()
  endpoint = await startIntrospectionEndpoint()
  metadata = createServer((request, response) => {
    if (request.url !== '/.well-known/oauth-authorization-server') return void response.writeHead(404).end()
    const members = { issuer: iss, jwks_uri: issuer.jwksUri, introspection_endpoint: endpoint.url }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(members))
  })
  await new Promise<void>((resolve) => metadata.listen(0, '127.0.0.1', resolve))
  iss = `http://127.0.0.1:${(metadata.address() as AddressInfo).port}`
  api = createServer((_request, response) => void response.end('{}'))
  await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve))
  gateway = await startGatewayWorkers({
    allowInsecure: ['http-issuer'],
    issuers: [{ issuer: iss, introspection: { client: { id: 'gateway', secret } } }],
    upstreams: { api: { url: `http://127.0.0.1:${(api.address() as AddressInfo).port}` } },
    routes: [{ id: 'orders', path: '/orders/**', audience: [orders], upstream: 'api' }],
  })
  await until(async () => expect(await gateway.readiness()).toMatchObject({ ok: true }))
})
afterAll(async () => {
  await gateway?.close()
  api?.close()
  await endpoint?.close()
  metadata?.close()
  await issuer?.close()
})

const issue = (members: object = {}): string => {
  const token = `opaque-${crypto.randomUUID()}`
  const now = Math.floor(Date.now() / 1000)
  endpoint.tokens.set(token, { sub: 'u1', aud: orders, iat: now, exp: now + 3_600, ...members })
  return token
}
/** On a connection of its own each, so that the workers take turns. */
const call = async (path: string, token: string): Promise<number> => {
  const answer = await fetch(gateway.url + path, {
    headers: { authorization: `Bearer ${token}`, connection: 'close' },
  })
  await answer.arrayBuffer()
  return answer.status
}
const askedAbout = (token: string): number => endpoint.asked.filter((one) => one.token === token).length

test('a token is asked about once for all workers, at the same time and later', async () => {
  const token = issue()
  const release = endpoint.hold()
  const first = Array.from({ length: 8 }, (_, index) => call(`/orders/once-${index}`, token))
  await until(() => expect(askedAbout(token)).toBe(1))
  release()
  expect(await Promise.all(first)).toEqual(Array(8).fill(200))
  expect(await Promise.all(Array.from({ length: 8 }, () => call('/orders/later', token)))).toEqual(Array(8).fill(200))
  expect(gateway.child.output()).toMatch(/"worker":1[^\n]*asked \/orders/)
  expect(gateway.child.output()).toMatch(/"worker":2[^\n]*asked \/orders/)
  expect(askedAbout(token)).toBe(1)
  const metrics = await gateway.metrics()
  expect(metrics).toContain(`surrogate_gateway_introspections_total{issuer="${iss}",outcome="active"} 1`)
  expect(metrics).toMatch(/^surrogate_gateway_introspections_remembered_total\{issuer="[^"]+"\} \d+$/m)
})

test('and so is one that is not active', async () => {
  const token = `opaque-${crypto.randomUUID()}`
  const statuses = await Promise.all(Array.from({ length: 8 }, () => call('/orders/1', token)))
  expect(statuses).toEqual(Array(8).fill(401))
  expect(askedAbout(token)).toBe(1)
})

test('an issuer that cannot be asked is 503 in every worker; the reason is told, and no secret', async () => {
  const token = issue()
  endpoint.answer = (_request, response) => void response.writeHead(401).end()
  const statuses = await Promise.all(Array.from({ length: 8 }, () => call('/orders/1', token)))
  expect(statuses).toEqual(Array(8).fill(503))
  await until(async () =>
    expect(JSON.stringify(await gateway.readiness())).toContain('it does not accept the client and its secret'),
  )
  expect(gateway.child.output()).toContain('it does not accept the client and its secret')
  endpoint.answer = undefined
  expect(await call('/orders/1', token)).toBe(200)
  for (const hidden of [secret, ...endpoint.tokens.keys()]) {
    expect(gateway.child.output()).not.toContain(hidden)
    expect(await gateway.metrics()).not.toContain(hidden)
  }
})

test('a change that leaves the issuer as it was keeps what is known; another client asks for itself', async () => {
  const token = issue()
  expect(await call('/orders/1', token)).toBe(200)
  const file = (client: object) => ({
    allowInsecure: ['http-issuer'],
    issuers: [{ issuer: iss, introspection: { client } }],
    upstreams: { api: { url: `http://127.0.0.1:${(api.address() as AddressInfo).port}` } },
  })
  const routed = (path: string) => ({ routes: [{ id: 'orders', path, audience: [orders], upstream: 'api' }] })
  await gateway.write({ ...file({ id: 'gateway', secret }), ...routed('/kept/**') })
  await until(async () => expect(await call('/kept/1', token)).toBe(200))
  expect(askedAbout(token)).toBe(1)
  await gateway.write({ ...file({ id: 'gateway', secret: 'another' }), ...routed('/anew/**') })
  await until(async () => expect(await call('/anew/1', token)).toBe(200))
  expect(await Promise.all(Array.from({ length: 8 }, () => call('/anew/1', token)))).toEqual(Array(8).fill(200))
  expect(askedAbout(token)).toBe(2)
})
