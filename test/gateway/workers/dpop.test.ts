import { afterAll, beforeAll, expect, test } from 'vitest'
import { type DpopClient, newDpopClient } from '../../support/dpop.ts'
import { orders, startUpstream, type TestUpstream } from '../../support/gateway.ts'
import { type GatewayWorkers, startGatewayWorkers } from '../../support/gateway-workers.ts'
import { startTokenIssuer, type TokenIssuer } from '../../support/token-issuer.ts'
import { until } from '../../support/until.ts'

/** A proof is good once over all workers, and a nonce of one is good for the others. */

let issuer: TokenIssuer
let upstream: TestUpstream
let gateway: GatewayWorkers
let client: DpopClient
const config = () => ({
  allowInsecure: ['http-issuer'],
  issuers: [{ issuer: issuer.issuer }],
  upstreams: { api: { url: upstream.url } },
  routes: [{ id: 'orders', path: '/orders/**', audience: [orders], upstream: 'api', dpop: 'required' }],
})

beforeAll(async () => {
  ;[issuer, upstream, client] = await Promise.all([startTokenIssuer(), startUpstream(), newDpopClient()])
  gateway = await startGatewayWorkers(config())
  await until(async () => expect(await gateway.readiness()).toMatchObject({ ok: true }))
})
afterAll(async () => {
  await gateway?.close()
  await upstream?.close()
  await issuer?.close()
})

const fieldsOf = async (path: string, nonce: string | undefined) => {
  const token = await issuer.sign({ cnf: client.cnf })
  return client.fields({ url: gateway.url + path, token, nonce })
}

/** On a connection of its own, so that the workers take turns. */
const send = async (path: string, headers: Record<string, string>) => {
  const response = await fetch(gateway.url + path, { headers: { ...headers, connection: 'close' } })
  const { detail } = (await response.json()) as { detail?: string }
  return { status: response.status, detail, nonce: response.headers.get('dpop-nonce') ?? undefined }
}

const nonceOf = async () => (await send('/orders/1', await fieldsOf('/orders/1', undefined))).nonce

/** How often it was accepted. */
const race = async (path: string, fields: Record<string, string>, copies = 12) => {
  const answers = await Promise.all(Array.from({ length: copies }, () => send(path, fields)))
  const refused = answers.filter(({ status }) => status !== 200)
  expect(refused.map(({ detail }) => detail)).toEqual(refused.map(() => 'The DPoP proof was used before.'))
  return copies - refused.length
}

test('of copies that race through both workers one passes', async () => {
  const nonce = await nonceOf()
  for (let round = 0; round < 5; round++) {
    expect(await race(`/orders/${round}`, await fieldsOf(`/orders/${round}`, nonce))).toBe(1)
  }
  expect(await gateway.metrics()).toMatch(/^surrogate_gateway_dpop_proofs 5$/m)
  expect(await gateway.metrics()).toMatch(/^surrogate_gateway_dpop_proofs_refused_total\{reason="again"\} 55$/m)
  // One worker may have won every race.
  await until(async () => {
    expect((await send('/orders/1', await fieldsOf('/orders/1', nonce))).status).toBe(200)
    const output = gateway.child.output()
    expect(output).toMatch(/"worker":1[^\n]*asked \/orders/)
    expect(output).toMatch(/"worker":2[^\n]*asked \/orders/)
  })
})

test('what was used before both workers were killed or reloaded stays used, and nonces stay good', async () => {
  const nonce = await nonceOf()
  const fields = await fieldsOf('/orders/used', nonce)
  expect((await send('/orders/used', fields)).status).toBe(200)

  await gateway.write({ ...config(), resourceMetadata: false })
  await gateway.child.waitFor(/the configuration was reloaded/)
  expect(await race('/orders/used', fields)).toBe(0)

  const before = gateway.workers()
  for (const pid of before) process.kill(pid, 'SIGKILL')
  await until(() => expect(gateway.workers().filter((pid) => !before.includes(pid))).toHaveLength(2))
  await until(async () => expect(await gateway.readiness()).toMatchObject({ ok: true }))
  expect(await race('/orders/used', fields)).toBe(0)
  expect((await send('/orders/new', await fieldsOf('/orders/new', nonce))).status).toBe(200)
})
