import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { createProxyMiddleware } from 'http-proxy-middleware'
import { afterEach, describe, expect, test } from 'vitest'
import { type Guard, type ProtectOptions, protect } from '../../gateway/express.ts'
import { silentLogger } from '../../platform/logger.ts'
import { StartupError } from '../../platform/startup-error.ts'
import { orders, startUpstream } from '../support/gateway.ts'
import { startTokenIssuer } from '../support/token-issuer.ts'

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

/** An Express app with the guard before a proxy at /orders and before a handler at /own. */
const start = async (options: Partial<ProtectOptions> = {}) => {
  const issuer = await startTokenIssuer()
  const upstream = await startUpstream()
  const guard = protect({
    issuer: issuer.issuer,
    audience: orders,
    scopes: ['read:orders'],
    logger: silentLogger,
    ...options,
  })
  const app = express()
  app.use('/orders', guard, createProxyMiddleware({ target: upstream.url }))
  app.get('/own/*rest', guard, (request, response) => {
    const { auth } = request as typeof request & { auth: { claims: { sub: string }; decision: unknown } }
    response.json({ sub: auth.claims.sub, decision: auth.decision, url: request.originalUrl })
  })
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanup.push(
    () => upstream.close(),
    () => issuer.close(),
    () => guard.close().catch(() => {}),
    () => server.close(),
  )
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const call = async (path: string, headers: Record<string, string> = {}, claims: Record<string, unknown> = {}) => {
    const token = await issuer.sign({ scope: 'read:orders', client_id: 'c1', ...claims })
    return fetch(url + path, { headers: { authorization: `Bearer ${token}`, ...headers } })
  }
  return { url, call, upstream, guard: guard as Guard }
}

test('a good token gets through a proxy, with an identity that cannot be forged', async () => {
  const { call, upstream, guard } = await start()
  await guard.ready
  const response = await call('/orders/%34%32?x=1', {
    'X-Auth-Sub': 'root',
    x_auth_act: 'root',
    'x-http-method-override': 'DELETE',
  })
  expect(response.status).toBe(200)
  const { url, headers } = upstream.seen[0]!
  expect(url).toBe('/42?x=1')
  expect(headers).toMatchObject({ 'x-auth-sub': 'u1', 'x-auth-scope': 'read:orders', 'x-auth-client-id': 'c1' })
  expect(Object.keys(headers).filter((name) => /auth.act|override/.test(name))).toEqual([])
})

test('handlers see who is asking and the path that was decided on', async () => {
  const { call } = await start()
  const response = await call('/own/%61')
  expect(await response.json()).toEqual({ sub: 'u1', decision: { allow: true, headers: {} }, url: '/own/a' })
})

test('refusals are those of the gateway, and nothing behind the guard runs', async () => {
  const { url, call, upstream } = await start({ impersonation: 'deny' })
  const answers = [
    await fetch(`${url}/orders`),
    await call('/orders', {}, { scope: 'other' }),
    await call('/orders', {}, { aud: 'https://other.test' }),
    await call('/orders', {}, { act: { sub: 'agent' } }),
    await call('/orders/%2e%2e%2fadmin'),
  ]
  const seen = await Promise.all(
    answers.map(async (answer) => [
      answer.status,
      ((await answer.json()) as { code: string }).code,
      answer.headers.get('www-authenticate'),
    ]),
  )
  expect(seen).toEqual([
    [401, 'token_missing', 'Bearer'],
    [401, 'insufficient_scope', 'Bearer error="insufficient_scope", scope="read:orders"'],
    [401, 'invalid_token', 'Bearer error="invalid_token", error_description="The token is for another audience."'],
    [403, 'impersonation_denied', null],
    [400, 'invalid_request', null],
  ])
  expect(upstream.seen).toEqual([])
})

test('every setting of an issuer is an option, and what is none is refused', async () => {
  const issuer = await startTokenIssuer()
  cleanup.push(() => issuer.close())
  const options = { issuer: issuer.issuer, audience: orders, logger: silentLogger }
  const guard = protect({ ...options, jwks: { cooldown: '1s' }, clockSkew: '1s' })
  cleanup.push(() => guard.close())
  await guard.ready
  const misspelt = { ...options, scope: ['read:orders'] }
  expect(() => protect(misspelt)).toThrow('unknown key scope')
})

describe('a guard that cannot work', () => {
  test('says so at once for options that cannot be right', () => {
    expect(() => protect({ issuer: 'https://id.test', audience: [] })).toThrow(StartupError)
    const proxyOnly = { issuer: 'https://id.test', audience: orders, policyBody: { type: 'json' } }
    expect(() => protect(proxyOnly as ProtectOptions)).toThrow('policyBody is a setting of the gateway as a proxy')
    expect(() => protect({ issuer: 'https://id.test', audience: 'a', algorithms: ['HS256'] })).toThrow('ES256')
  })

  test('refuses everything when its policies are missing', async () => {
    const { call, guard, upstream } = await start({ policies: './no-such-policies' })
    await expect(guard.ready).rejects.toThrow(StartupError)
    expect((await call('/orders')).status).toBe(503)
    expect(upstream.seen).toEqual([])
  })
})
