import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { Agent } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import express from 'express'
import { createProxyMiddleware } from 'http-proxy-middleware'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type ProtectOptions, protect } from '../../gateway/express.ts'
import { silentLogger } from '../../platform/logger.ts'
import { orders, sendRaw, startUpstream } from '../support/gateway.ts'
import { startTokenIssuer, type TokenIssuer } from '../support/token-issuer.ts'

/** A guard among other middleware: what ran before it, where it is mounted, and what is behind it. */

const rules = `package own

import rego.v1

default allowed := false

allowed if not startswith(input.request.path, "/admin")

# METADATA
# entrypoint: true
decision := {"allow": allowed, "headers": {"x-plan": "silver"}}
`

let issuer: TokenIssuer
let folder: string
beforeAll(async () => {
  issuer = await startTokenIssuer()
  folder = await mkdtemp(join(tmpdir(), 'guard-rules-'))
  await writeFile(join(folder, 'own.rego'), rules)
})
afterAll(async () => {
  await issuer.close()
  await rm(folder, { recursive: true })
})

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const guarded = (options: Partial<ProtectOptions> = {}) => {
  const guard = protect({
    issuer: issuer.issuer,
    audience: orders,
    policies: folder,
    entrypoint: 'own/decision',
    logger: silentLogger,
    ...options,
  })
  cleanup.push(() => guard.close())
  return guard
}

const serve = async (app: express.Express) => {
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanup.push(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  const token = await issuer.sign({ scope: 'read:orders', client_id: 'c1', act: { sub: 'agent' } })
  const call = (path: string, { headers, ...init }: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers: { authorization: `Bearer ${token}`, ...headers } })
  return { port, token, call }
}

test('a client cannot take who is acting from the request by naming the field in Connection', async () => {
  const upstream = await startUpstream()
  cleanup.push(upstream.close)
  const agent = new Agent({ keepAlive: true })
  cleanup.push(() => agent.destroy())
  const app = express()
  app.use(guarded(), createProxyMiddleware({ target: upstream.url, agent }))
  const { port, token } = await serve(app)
  await sendRaw(
    port,
    `GET /orders HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${token}\r\nconnection: close, x-auth-act, X-Auth-Act-Chain\r\n\r\n`,
  )
  const { headers } = upstream.seen[0]!
  expect(headers).toMatchObject({ 'x-auth-sub': 'u1', 'x-auth-act': 'agent' })
  expect(headers['connection']).not.toMatch(/auth/i)
})

test('every way that Node shows header fields shows those of the guard only', async () => {
  const app = express()
  app.use((request, _response, next) => {
    // Whoever looked before has not made Node remember what the client said.
    void request.headersDistinct
    next()
  })
  app.use(guarded(), (request, response) => {
    const { headers, headersDistinct, rawHeaders } = request
    const raw = rawHeaders.flatMap((name, index) =>
      index % 2 === 0 && /^x.(auth.s|plan)/i.test(name) ? [[name.toLowerCase(), rawHeaders[index + 1]]] : [],
    )
    response.json({
      plain: [headers['x-auth-sub'], headers['x-plan']],
      distinct: [headersDistinct['x-auth-sub'], headersDistinct['x-auth-sid'], headersDistinct['x-plan']],
      raw,
    })
  })
  const { call } = await serve(app)
  const answer = await call('/a', {
    headers: { 'X-Auth-Sub': 'root', 'X-Auth-Sid': 'root', 'X-Plan': 'gold', X_Plan: 'gold' },
  })
  expect(await answer.json()).toEqual({
    plain: ['u1', 'silver'],
    distinct: [['u1'], null, ['silver']],
    raw: [
      ['x-plan', 'silver'],
      ['x-auth-sub', 'u1'],
      ['x-auth-scope', 'read:orders'],
    ],
  })
})

test('what an earlier middleware made of the URL is what is decided on', async () => {
  const app = express()
  app.use((request, _response, next) => {
    request.url = request.url.replace(/^\/v1\//, '/')
    next()
  })
  app.use(guarded(), (request, response) => {
    response.json({ url: request.url, originalUrl: request.originalUrl, path: request.path })
  })
  const { call } = await serve(app)
  expect((await call('/admin/1')).status).toBe(403)
  expect((await call('/v1/admin/1')).status).toBe(403)
  expect(await (await call('/v1/%61?x=1')).json()).toEqual({ url: '/a?x=1', originalUrl: '/a?x=1', path: '/a' })
})

test('mounted however deep, it decides on the whole path, and handlers see theirs', async () => {
  const app = express()
  const inner = express.Router()
  inner.use('/:id', guarded(), (request, response) => {
    response.json([request.baseUrl, request.url, request.originalUrl])
  })
  app.use('/admin', guarded(), (_request, response) => void response.sendStatus(200))
  app.use('/api', inner)
  const { call } = await serve(app)
  expect((await call('/admin')).status).toBe(403)
  expect((await call('/admin?x=1')).status).toBe(403)
  expect((await call('/admin/')).status).toBe(403)
  expect(await (await call('/api/7')).json()).toEqual(['/api/7', '/', '/api/7'])
  expect(await (await call('/api/7?x=%41')).json()).toEqual(['/api/7', '/?x=%41', '/api/7?x=%41'])
  expect(await (await call('/api/7/%62/')).json()).toEqual(['/api/7', '/b/', '/api/7/b/'])
})

test('a body that was read before it is there behind it; one that was not can be read', async () => {
  const app = express()
  app.post('/early', express.json(), guarded(), (request, response) => void response.json(request.body))
  app.post('/late', guarded(), express.json(), (request, response) => void response.json(request.body))
  const { call } = await serve(app)
  const post = { method: 'POST', body: '{"a":1}', headers: { 'content-type': 'application/json' } }
  expect(await (await call('/early', post)).json()).toEqual({ a: 1 })
  expect(await (await call('/late', post)).json()).toEqual({ a: 1 })
})

test('one guard behind another: the inner one decides anew and nothing of the outer one is doubled', async () => {
  const app = express()
  app.use(guarded())
  app.use(guarded({ id: 'inner' }), (request, response) => {
    response.json([request.headersDistinct['x-auth-sub'], request.headersDistinct['x-plan'], request.auth?.subject])
  })
  const { call } = await serve(app)
  expect(await (await call('/a')).json()).toEqual([['u1'], ['silver'], { id: 'u1' }])
})
