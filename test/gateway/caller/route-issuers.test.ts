import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { askForDecision } from '../../support/forward-auth.ts'
import { orders, sendRaw, startTestGateway, startUpstream, type TestGateway } from '../../support/gateway.ts'
import { startTokenIssuer, type TokenIssuer } from '../../support/token-issuer.ts'
import { until } from '../../support/until.ts'

/** A trusted issuer speaks for the routes that name it, and for no other one. */

let ours: TokenIssuer
let theirs: TokenIssuer
let gateway: TestGateway
beforeAll(async () => {
  ours = await startTokenIssuer()
  theirs = await startTokenIssuer({ alg: 'EdDSA' })
  const route = { audience: [orders], scopes: ['read:orders'], upstream: 'orders' }
  gateway = await startTestGateway({
    config: () => ({
      trustedProxies: ['127.0.0.1'],
      forwardAuth: { dialect: 'traefik' },
      issuers: [{ issuer: ours.issuer }, { issuer: theirs.issuer }],
      routes: [
        { ...route, id: 'ours', path: '/ours/**', issuers: [ours.issuer], websocket: true },
        { ...route, id: 'theirs', path: '/theirs/**', issuers: [theirs.issuer] },
        { ...route, id: 'both', path: '/both/**', issuers: [ours.issuer, theirs.issuer] },
        { id: 'public', path: '/public', auth: 'none', upstream: 'orders' },
      ],
    }),
  })
  await until(async () => expect((await gateway.health.ready()).ok).toBe(true))
})
afterAll(async () => {
  await gateway.close()
  await ours.close()
  await theirs.close()
})

const refused = {
  status: 401,
  challenge:
    'Bearer error="invalid_token", error_description="The token is from an issuer that is not accepted here.", resource_metadata="https://api.test/.well-known/oauth-protected-resource/orders"',
}
const call = async (path: string, token: string) => {
  const { status, headers } = await gateway.call(path, { token })
  return status === 200 ? 200 : { status, challenge: headers.get('www-authenticate') }
}
const scope = 'read:orders'

describe('a token of an issuer that the route does not name', () => {
  test('is refused although its signature, audience and scope are right', async () => {
    expect(await call('/ours/1', await theirs.sign({ scope }))).toEqual(refused)
    expect(await call('/theirs/1', await ours.sign({ scope }))).toEqual(refused)
    expect(await call('/both/1', await theirs.sign({ scope }))).toBe(200)
    expect(await call('/both/1', await ours.sign({ scope }))).toBe(200)
  })

  test('is refused although it was verified for another route before', async () => {
    const token = await theirs.sign({ scope })
    expect(await call('/theirs/1', token)).toBe(200)
    expect(await call('/ours/1', token)).toEqual(refused)
    expect(await call('/theirs/2', token)).toBe(200)
  })

  test('asks nobody for a key that is not known yet', async () => {
    const asked = theirs.requests.length
    const unpublished = await theirs.rotate({ publish: false })
    expect(await call('/ours/1', await theirs.sign({ scope }, {}, unpublished))).toEqual(refused)
    expect(theirs.requests.length).toBe(asked)
  })

  test('opens no WebSocket', async () => {
    const lines = [
      'GET /ours/live HTTP/1.1',
      'Host: api.test',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
      `Authorization: Bearer ${await theirs.sign({ scope }, {}, await theirs.rotate())}`,
    ]
    expect(await sendRaw(gateway.port, `${lines.join('\r\n')}\r\n\r\n`)).toMatch(/^HTTP\/1.1 401 /)
  })

  test('gets no decision for another proxy', async () => {
    const ask = async (uri: string, issuer: TokenIssuer) =>
      (await askForDecision(gateway, uri, { authorization: `Bearer ${await issuer.sign({ scope })}` })).status
    expect(await ask('/ours/1', ours)).toBe(200)
    expect(await ask('/ours/1', theirs)).toBe(401)
  })
})

test('metadata of a resource name the issuers of its routes only', async () => {
  const api = (name: string) => `https://api.test/${name}`
  const at = await startTestGateway({
    config: ({ issuer }) => ({
      issuers: [{ issuer: issuer.issuer }, { issuer: ours.issuer }],
      routes: [
        { id: 'a', path: '/a', audience: [api('a')], issuers: [issuer.issuer], upstream: 'orders' },
        { id: 'b', path: '/b', audience: [api('b')], issuers: [ours.issuer], upstream: 'orders' },
        { id: 'ab', path: '/ab', audience: [api('b')], issuers: [issuer.issuer], upstream: 'orders' },
      ],
    }),
  })
  onTestFinished(() => at.close())
  const serversOf = async (name: string) => {
    const answer = await fetch(`${at.url}/.well-known/oauth-protected-resource/${name}`)
    return ((await answer.json()) as { authorization_servers: string[] }).authorization_servers
  }
  expect(await serversOf('a')).toEqual([at.issuer.issuer])
  expect(await serversOf('b')).toEqual([ours.issuer, at.issuer.issuer])
})

test('a personal access token is shown to an issuer of the route, and to no other one', async () => {
  const record = await startUpstream()
  const wanted = await startUpstream()
  onTestFinished(async () => {
    await record.close()
    await wanted.close()
  })
  const client = { id: 'g', secret: 's' }
  const route = { audience: [orders], scopes: [scope], acceptPersonalAccessTokens: true, upstream: 'orders' }
  const at = await startTestGateway({
    config: ({ issuer }) => ({
      issuers: [
        { issuer: issuer.issuer, client, tokenEndpoint: record.url },
        { issuer: ours.issuer, client, tokenEndpoint: wanted.url },
        { issuer: theirs.issuer },
      ],
      routes: [{ ...route, id: 'ours', path: '/ours', issuers: [theirs.issuer, ours.issuer] }],
    }),
  })
  onTestFinished(() => at.close())
  const issued = await ours.sign({ scope })
  wanted.answer = (_request, response) =>
    void response.end(JSON.stringify({ access_token: issued, token_type: 'Bearer', expires_in: 300 }))
  expect((await at.call('/ours', { token: `pat_${'x'.repeat(32)}` })).status).toBe(200)
  expect([wanted.seen.length, record.seen.length]).toEqual([1, 0])
  expect(at.upstream.seen.at(-1)?.headers['authorization']).toBe(`Bearer ${issued}`)

  // What the right issuer's token endpoint answers is still a token of the route's issuers, or none.
  const stranger = await at.issuer.sign({ scope })
  wanted.answer = (_request, response) =>
    void response.end(JSON.stringify({ access_token: stranger, token_type: 'Bearer', expires_in: 300 }))
  expect((await at.call('/ours', { token: `pat_${'y'.repeat(32)}` })).status).toBe(401)
})
