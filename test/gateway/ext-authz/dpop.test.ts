import { expect, onTestFinished, test } from 'vitest'
import { newDpopClient } from '../../support/dpop.ts'
import { connectExtAuthz } from '../../support/ext-authz.ts'
import { orders, startTestGateway } from '../../support/gateway.ts'

/** DPoP (RFC 9449) of Envoy's client: its proof is about the request that it sent to Envoy. */

const url = 'https://api.test/orders/1'

const start = async (dpop: object) => {
  const gateway = await startTestGateway({
    config: () => ({
      trustedProxies: ['127.0.0.1'],
      extAuthz: { port: 0 },
      routes: [
        { id: 'bound', path: '/orders/{id}', audience: [orders], ...dpop },
        { id: 'plain', path: '/plain', audience: [orders] },
      ],
    }),
  })
  onTestFinished(gateway.close)
  const envoy = connectExtAuthz(gateway.extAuthzPort)
  onTestFinished(() => envoy.close())
  const client = await newDpopClient()
  const token = await gateway.issuer.sign({ cnf: client.cnf })
  const ask = (headers: Record<string, string>, asked: object = {}) =>
    envoy.check({ path: '/orders/1?page=2', headers, ...asked })
  return { gateway, envoy, client, token, ask }
}

test('the client gets challenge and nonce, and its proof is good once, for this request', async () => {
  const { gateway, client, token, ask } = await start({ dpop: 'required' })
  const refused = await ask(await client.fields({ url, token }))
  expect(refused).toMatchObject({ allowed: false, code: 16, status: 401 })
  expect(refused.headers['www-authenticate']).toMatch(/^DPoP error="use_dpop_nonce"/)
  const nonce = refused.headers['dpop-nonce']!
  expect(nonce).toMatch(/^[\w-]{43}$/)

  const fields = await client.fields({ url, token, nonce })
  const allowed = await ask(fields)
  expect(allowed).toMatchObject({ allowed: true, headers: { 'x-auth-sub': 'u1', authorization: `DPoP ${token}` } })
  expect(JSON.stringify(allowed.metadata)).not.toContain(token)
  const again = await ask(fields)
  expect([again.status, again.headers['www-authenticate']]).toEqual([
    401,
    expect.stringMatching(/^DPoP error="invalid_dpop_proof"/),
  ])
  // The same table as of the gateway's own requests.
  expect((await gateway.call('/orders/1', { headers: fields })).status).toBe(401)
})

test('proofs of another request, key or token, several and none are refused', async () => {
  const { gateway, client, token, ask } = await start({ dpop: 'required' })
  const nonce = (await ask(await client.fields({ url, token }))).headers['dpop-nonce']
  const other = await newDpopClient()
  const fresh = (about: object = {}, by = client) => by.fields({ url, token, nonce, ...about })
  const { dpop } = await fresh()
  const unbound = await gateway.issuer.sign({})
  const refused: [string, Record<string, string>, object?][] = [
    ['another method', await fresh({ method: 'POST' })],
    ['another path', await fresh({ url: 'https://api.test/orders/2' })],
    ['another host', await fresh({ url: 'https://other.test/orders/1' })],
    ['another scheme', await fresh({ url: 'http://api.test/orders/1' })],
    ['a scheme that the client forged', await fresh(), { scheme: 'http' }],
    ['another key', await fresh({}, other)],
    ['another token', { ...(await fresh({ token: unbound })), authorization: `DPoP ${token}` }],
    ['two proofs, joined', { ...(await fresh()), dpop: `${dpop},${dpop}` }],
    ['none', { authorization: `DPoP ${token}` }],
    ['as a bearer token', { authorization: `Bearer ${token}` }],
    ['a token without a key', await fresh({ token: unbound })],
  ]
  for (const [name, headers, asked] of refused) {
    expect([name, (await ask(headers, asked)).allowed]).toEqual([name, false])
  }
  expect((await ask(await fresh())).allowed).toBe(true)
})

test('a bound token is no bearer token on any route', async () => {
  const { envoy, token } = await start({ dpop: 'accepted' })
  const answer = await envoy.check({ path: '/plain', headers: { authorization: `Bearer ${token}` } })
  expect(answer).toMatchObject({ allowed: false, status: 401 })
})
