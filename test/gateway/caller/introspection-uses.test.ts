import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import express from 'express'
import { decodeJwt, exportJWK, generateKeyPair } from 'jose'
import { expect, onTestFinished, test } from 'vitest'
import { protect } from '../../../gateway/express.ts'
import { silentLogger } from '../../../platform/logger.ts'
import { newDpopClient } from '../../support/dpop.ts'
import { orders } from '../../support/gateway.ts'
import { startIntrospectionEndpoint } from '../../support/introspection-endpoint.ts'
import { startTokenIssuer } from '../../support/token-issuer.ts'
import { until } from '../../support/until.ts'
import { client, newToken, startIntrospecting } from './introspection-gateway.ts'

/** Opaque tokens in every way of using the gateway, and with what else looks at tokens. */

test('a proxy that asks for decisions is told who the token speaks for', async () => {
  const gateway = await startIntrospecting({
    config: { trustedProxies: ['127.0.0.1'], forwardAuth: { dialect: 'traefik' } },
  })
  const ask = (token: string) =>
    fetch(`${gateway.url}/.surrogate/auth`, {
      headers: {
        authorization: `Bearer ${token}`,
        'x-forwarded-method': 'GET',
        'x-forwarded-uri': '/orders/1',
        'x-forwarded-host': 'api.test',
        'x-forwarded-proto': 'https',
      },
    })
  const told = await ask(gateway.issue())
  expect([told.status, told.headers.get('x-auth-sub')]).toEqual([200, 'u1'])
  expect((await ask(newToken())).status).toBe(401)
})

test('a guard of an application asks, and hands over what the issuer says', async () => {
  const issuer = await startTokenIssuer()
  const endpoint = await startIntrospectionEndpoint()
  onTestFinished(async () => {
    await endpoint.close()
    await issuer.close()
  })
  const guard = protect({
    issuer: issuer.issuer,
    introspection: { url: endpoint.url, client },
    audience: orders,
    scopes: ['read:orders'],
    logger: silentLogger,
  })
  onTestFinished(() => guard.close())
  const app = express()
  app.get('/orders', guard, (request, response) => void response.json(request.auth!.token.claims))
  const server = app.listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const token = newToken()
  endpoint.tokens.set(token, { sub: 'u1', aud: orders, scope: 'read:orders', 'https://claims.test/plan': 'gold' })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/orders`
  const call = (bearer: string) => fetch(url, { headers: { authorization: `Bearer ${bearer}` } })
  const answer = await call(token)
  expect(answer.status).toBe(200)
  expect(await answer.json()).toMatchObject({
    iss: issuer.issuer,
    sub: 'u1',
    iat: 0,
    'https://claims.test/plan': 'gold',
  })
  expect((await call(newToken())).status).toBe(401)
})

test('the identity for upstreams ends with the token, or with what is known of it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-introspection-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  const keyFile = join(folder, 'identity.json')
  await writeFile(keyFile, JSON.stringify(await exportJWK(privateKey)))
  const gateway = await startIntrospecting({ config: { identity: { issuer: 'https://gw.test', keyFile } } })
  const upstreams = { orders: { url: gateway.upstream.url, identityAudience: 'orders' } }
  const asserting = await startIntrospecting({
    config: { identity: { issuer: 'https://gw.test', keyFile }, upstreams },
  })
  const assertionOf = async (members: object) => {
    expect((await asserting.ask('/orders/1', asserting.issue(members))).status).toBe(200)
    return decodeJwt(gateway.upstream.seen.at(-1)!.headers['x-auth-assertion']!)
  }
  const soon = Math.floor(Date.now() / 1000) + 20
  expect(await assertionOf({ exp: soon })).toMatchObject({ sub: 'u1', exp: soon })
  const { iat, exp } = await assertionOf({ exp: undefined })
  expect(exp! - iat!).toBeLessThanOrEqual(60)
})

test('what the revocation feed tells counts at once, also for a token that does not say when it was issued', async () => {
  const entries: object[] = []
  let waiting: (() => void)[] = []
  const feed = createServer((request, response) => {
    const query = new URL(request.url!, 'http://feed').searchParams
    const answer = () => {
      const body = { entries: entries.slice(Number(query.get('since') ?? 0)), cursor: entries.length, more: false }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }
    if (query.get('wait') === '0' || entries.length > Number(query.get('since'))) answer()
    else waiting.push(answer)
  })
  feed.listen(0, '127.0.0.1')
  await once(feed, 'listening')
  onTestFinished(() => {
    feed.close()
    feed.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(feed.address() as AddressInfo).port}/revocations`
  const gateway = await startIntrospecting({ issuer: { client, revocations: { mode: 'feed', url } } })
  await until(async () => expect((await gateway.health.ready()).ok).toBe(true))
  const [revoked, undated, other] = [
    gateway.issue({ sid: 's1' }),
    gateway.issue({ sub: 'u2', iat: undefined }),
    gateway.issue({ sid: 's2' }),
  ]
  for (const token of [revoked, undated, other]) expect((await gateway.ask('/orders/1', token)).status).toBe(200)
  const soon = Math.floor(Date.now() / 1000)
  entries.push({ kind: 'sid', value: 's1', issuedBefore: null, expiresAt: soon + 3_600 })
  entries.push({ kind: 'sub', value: 'u2', issuedBefore: soon - 3_600, expiresAt: soon + 3_600 })
  for (const answer of waiting.splice(0)) answer()
  waiting = []
  await until(async () => expect((await gateway.ask('/orders/1', revoked)).status).toBe(401))
  await until(async () => expect((await gateway.ask('/orders/1', undated)).status).toBe(401))
  expect((await gateway.ask('/orders/1', other)).status).toBe(200)
  expect(gateway.endpoint.asked).toHaveLength(3)
})

test('a token that is bound to a key is good with a proof of it, and never as a bearer token', async () => {
  const gateway = await startIntrospecting({ route: { dpop: 'accepted' } })
  const { cnf, fields } = await newDpopClient()
  const token = gateway.issue({ cnf, token_type: 'DPoP' })
  expect(await gateway.ask('/orders/1', token)).toMatchObject({ status: 401, body: { code: 'invalid_token' } })
  const url = `${gateway.url}/orders/1`
  const send = async (nonce?: string) =>
    fetch(url, { headers: await fields({ url, token, ...(nonce !== undefined && { nonce }) }) })
  const first = await send()
  expect(first.status).toBe(401)
  expect((await send(first.headers.get('dpop-nonce')!)).status).toBe(200)
  expect(gateway.endpoint.asked).toHaveLength(1)
})
