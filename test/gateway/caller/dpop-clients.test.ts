import { once } from 'node:events'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import express from 'express'
import * as oauth from 'oauth4webapi'
import { afterEach, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { protect } from '../../../gateway/express.ts'
import { silentLogger } from '../../../platform/logger.ts'
import { type DpopClient, newDpopClient } from '../../support/dpop.ts'
import { orders, startTestGateway, startUpstream } from '../../support/gateway.ts'
import { startReferenceIssuer } from '../../support/oidc-provider.ts'
import { startProcess } from '../../support/process.ts'
import { startTokenIssuer } from '../../support/token-issuer.ts'
import { startWebSocketApi } from '../../support/websocket-api.ts'

/** Clients, issuers and applications that are not ours, and the other ways to the gateway. */

const cleanup: (() => unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})
const route = { id: 'orders', path: '/orders/**', audience: [orders], upstream: 'orders', dpop: 'required' }

test('the program of the documentation, with a token of oidc-provider', async () => {
  const issuer = await startReferenceIssuer({
    clients: [
      {
        client_id: 'shop',
        client_secret: 'secret of the shop',
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      },
    ],
    resources: { [orders]: ['read:orders'] },
    granted: ['read:orders'],
  })
  const gateway = await startTestGateway({
    config: () => ({ issuers: [{ issuer: issuer.issuer }], routes: [{ ...route, scopes: ['read:orders'] }] }),
  })
  const folder = await mkdtemp(join(tmpdir(), 'dpop-client-'))
  cleanup.push(issuer.close, gateway.close, () => rm(folder, { recursive: true }))

  const page = await readFile(new URL('../../../docs/dpop.md', import.meta.url), 'utf8')
  const [, program = ''] = /```js\n([\s\S]*?)```/.exec(page) ?? []
  await writeFile(join(folder, 'client.mjs'), program)
  await symlink(fileURLToPath(new URL('../../../node_modules', import.meta.url)), join(folder, 'node_modules'))
  const child = startProcess(process.execPath, ['client.mjs'], {
    cwd: folder,
    env: {
      ISSUER: issuer.issuer,
      CLIENT_ID: 'shop',
      CLIENT_SECRET: 'secret of the shop',
      RESOURCE: orders,
      URL: `${gateway.url}/orders/1?page=2`,
    },
  })
  await child.exited
  expect(child.output()).toBe('a token of the type dpop\n200\n200\n200\n')
  const { text } = await gateway.metrics.render()
  expect(text).toMatch(/^surrogate_gateway_requests_total\{route="orders",status="401"\} 1$/m)
  expect(text).toMatch(/^surrogate_gateway_requests_total\{route="orders",status="200"\} 3$/m)
})

test('oauth4webapi learns from each answer, and its key must be the one of the token', async () => {
  const gateway = await startTestGateway({ config: () => ({ routes: [{ ...route, dpop: 'accepted' }] }) })
  cleanup.push(gateway.close)
  const keys = await oauth.generateKeyPair('Ed25519')
  const dpop = oauth.DPoP({}, keys)
  const token = await gateway.issuer.sign({ cnf: { jkt: await dpop.calculateThumbprint() } })
  const ask = (handle: oauth.DPoPHandle, method = 'GET') =>
    oauth.protectedResourceRequest(token, method, new URL(`${gateway.url}/orders/%7Ea?x=1`), undefined, undefined, {
      DPoP: handle,
      [oauth.allowInsecureRequests]: true,
    })
  const refused = await ask(dpop).catch((error: unknown) => error)
  expect(oauth.isDPoPNonceError(refused)).toBe(true)
  expect((await ask(dpop)).status).toBe(200)
  expect((await ask(dpop, 'POST')).status).toBe(200)
  const stranger = await ask(oauth.DPoP({}, await oauth.generateKeyPair('ES256'))).catch((error: unknown) => error)
  expect(stranger).toMatchObject({
    status: 401,
    cause: [{ scheme: 'dpop', parameters: { error: 'invalid_dpop_proof', algs: expect.stringContaining('ES256') } }],
  })
})

describe('pages of other origins', () => {
  const start = async (cors: object) => {
    const gateway = await startTestGateway({ config: () => ({ routes: [{ ...route, cors }] }) })
    cleanup.push(gateway.close)
    return gateway
  }
  const origin = 'https://app.test'

  test('may send proofs and read nonces and challenges, refused ones too', async () => {
    const gateway = await start({ origins: [origin], headers: ['content-type'], exposeHeaders: ['X-Plan'] })
    const preflight = await fetch(`${gateway.url}/orders/1`, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'GET' },
    })
    expect(preflight.headers.get('access-control-allow-headers')).toBe('content-type, authorization, dpop')
    const client = await newDpopClient()
    const token = await gateway.issuer.sign({ cnf: client.cnf })
    const fields = await client.fields({ url: `${gateway.url}/orders/1`, token })
    const refused = await fetch(`${gateway.url}/orders/1`, { headers: { ...fields, origin } })
    expect(refused.status).toBe(401)
    expect(Object.fromEntries(refused.headers)).toMatchObject({
      'access-control-allow-origin': origin,
      'access-control-expose-headers': 'x-plan, www-authenticate, dpop-nonce',
      'dpop-nonce': expect.any(String),
    })
  })

  test('of an origin that may not ask learn nothing', async () => {
    const gateway = await start({ origins: [origin] })
    const refused = await fetch(`${gateway.url}/orders/1`, { headers: { origin: 'https://evil.test' } })
    expect(refused.headers.get('access-control-expose-headers')).toBe(null)
  })
})

test('the documents of resources say what their routes take', async () => {
  const at = (name: string) => `https://api.test/${name}`
  const gateway = await startTestGateway({
    config: () => ({
      resourceMetadata: true,
      routes: [
        { ...route, id: 'all', path: '/all', audience: [at('all')] },
        { ...route, id: 'one', path: '/one', audience: [at('some')] },
        { ...route, id: 'other', path: '/other', audience: [at('some')], dpop: undefined },
        { ...route, id: 'accepted', path: '/accepted', audience: [at('accepted')], dpop: 'accepted' },
        { ...route, id: 'none', path: '/none', audience: [at('none')], dpop: undefined },
      ],
    }),
  })
  cleanup.push(gateway.close)
  const told = async (name: string) => {
    const response = await fetch(`${gateway.url}/.well-known/oauth-protected-resource/${name}`)
    const body = (await response.json()) as Record<string, unknown>
    const { dpop_signing_alg_values_supported: algorithms, dpop_bound_access_tokens_required: required } = body
    return [Array.isArray(algorithms) && algorithms.includes('ES256'), required]
  }
  expect(await told('all')).toEqual([true, true])
  expect(await told('some')).toEqual([true, undefined])
  expect(await told('accepted')).toEqual([true, undefined])
  expect(await told('none')).toEqual([false, undefined])
})

test('a WebSocket is opened with the proof of its handshake, once', async () => {
  const api = await startWebSocketApi()
  const gateway = await startTestGateway({
    config: () => ({ upstreams: { orders: { url: api.url } }, routes: [{ ...route, websocket: true }] }),
  })
  cleanup.push(api.close, gateway.close)
  const client = await newDpopClient()
  const token = await gateway.issuer.sign({ cnf: client.cnf })
  const url = `${gateway.url}/orders/live`
  const open = (headers: Record<string, string>) =>
    new Promise<{ status: number; nonce: string | undefined }>((resolve, reject) => {
      const socket = new WebSocket(url.replace('http', 'ws'), { headers })
      socket.on('upgrade', () => resolve({ status: 101, nonce: undefined }))
      socket.on('open', () => socket.close())
      socket.on('unexpected-response', (_request, { statusCode, headers: fields }) => {
        resolve({ status: statusCode!, nonce: fields['dpop-nonce'] as string })
        socket.terminate()
      })
      socket.on('error', reject)
    })
  const { status, nonce } = await open(await client.fields({ url, token }))
  expect([status, nonce]).toEqual([401, expect.any(String)])
  const fields = await client.fields({ url, token, nonce })
  expect((await open(fields)).status).toBe(101)
  expect((await open(fields)).status).toBe(401)
  expect(api.handshakes[0]?.headers['dpop']).toBe(fields.dpop)
})

describe('protect()', () => {
  const start = async (build: (app: express.Express, guard: ReturnType<typeof protect>) => void, more: object = {}) => {
    const issuer = await startTokenIssuer()
    const guard = protect({
      issuer: issuer.issuer,
      audience: orders,
      dpop: 'required',
      allowInsecure: ['http-issuer'],
      logger: silentLogger,
      ...more,
    })
    const app = express()
    build(app, guard)
    const server = app.listen(0, '127.0.0.1')
    cleanup.push(issuer.close, guard.close, () => server.close())
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/orders/1`
    const client = await newDpopClient()
    const token = await issuer.sign({ cnf: client.cnf, scope: 'read:orders' })
    return { url, client, token }
  }
  const nonceOf = async ({ url, client, token }: { url: string; client: DpopClient; token: string }) =>
    (await fetch(url, { headers: await client.fields({ url, token }) })).headers.get('dpop-nonce') ?? undefined

  test('asks the same of the whole address, mounted or not', async () => {
    const parts = await start((app, guard) =>
      app.use('/api', guard, (request, response) => void response.json(request.headers)),
    )
    const fields = await parts.client.fields({ ...parts, nonce: await nonceOf(parts) })
    const answer = await fetch(parts.url, { headers: fields })
    expect([answer.status, await answer.json()]).toEqual([200, expect.objectContaining({ dpop: fields.dpop })])
    expect((await fetch(parts.url, { headers: fields })).status, 'again').toBe(401)
  })

  test('several guards of one take the same proof of the same request, and of no other', async () => {
    const parts = await start((app, guard) => {
      app.use('/api', guard)
      app.get('/api/orders/1', guard.with({ scopes: ['read:orders'] }), (_, response) => void response.json('done'))
    })
    const fields = await parts.client.fields({ ...parts, nonce: await nonceOf(parts) })
    const statuses = await Promise.all([1, 2, 3].map(async () => (await fetch(parts.url, { headers: fields })).status))
    expect(statuses.sort()).toEqual([200, 401, 401])
  })

  test('handlers that are not to have the token get no proof', async () => {
    const parts = await start(
      (app, guard) => app.use(guard, (request, response) => void response.json(request.headers)),
      { forwardAuthorization: false },
    )
    const answer = await fetch(parts.url, {
      headers: await parts.client.fields({ ...parts, nonce: await nonceOf(parts) }),
    })
    const seen = (await answer.json()) as Record<string, string>
    expect([answer.status, seen['authorization'], seen['dpop']]).toEqual([200, undefined, undefined])
  })
})

test('an upstream that answers with a nonce of its own is not heard before ours', async () => {
  const upstream = await startUpstream((_request, response) => response.setHeader('dpop-nonce', 'theirs').end('{}'))
  const gateway = await startTestGateway({
    config: () => ({ upstreams: { orders: { url: upstream.url } }, routes: [route] }),
  })
  cleanup.push(gateway.close, upstream.close)
  const client = await newDpopClient()
  const url = `${gateway.url}/orders/1`
  const token = await gateway.issuer.sign({ cnf: client.cnf })
  const first = await fetch(url, { headers: await client.fields({ url, token }) })
  const nonce = first.headers.get('dpop-nonce') ?? undefined
  const answer = await fetch(url, { headers: await client.fields({ url, token, nonce }) })
  expect([answer.status, answer.headers.get('dpop-nonce')]).toEqual([200, null])
})
