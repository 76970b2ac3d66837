import { X509Certificate } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { type RequestOptions, request } from 'node:https'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newDpopClient } from '../../support/dpop.ts'
import { orders, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { createTlsFiles, openHttp2 } from '../../support/tls-listener.ts'

/** RFC 8705 §3: a token that is bound to a client certificate. */

const files = createTlsFiles()
const ca = files.authority.certificate
const clientCa = files.path('clients.pem')
writeFileSync(clientCa, ca)
const [alice, bob] = [files.authority.issue('alice'), files.authority.issue('bob')]
const thumbprint = (cert: string) =>
  Buffer.from(new X509Certificate(cert).fingerprint256.replaceAll(':', ''), 'hex').toString('base64url')

let gateway: TestGateway
beforeAll(async () => {
  const route = { path: '/**', audience: [orders], upstream: 'orders' }
  const tls = { certificates: [files.pair('localhost')], clientCa, clientCertificate: 'optional' }
  gateway = await startTestGateway({
    config: () => ({
      listen: { port: 0, tls },
      routes: [
        { ...route, id: 'plain' },
        { ...route, id: 'bound', path: '/bound', dpop: 'required' },
      ],
    }),
  })
})
afterAll(async () => {
  await gateway.close()
  files.remove()
})

const ask = (path: string, headers: Record<string, string>, options: RequestOptions = {}) =>
  new Promise<{ status: number; code?: string; nonce: string }>((resolve, reject) => {
    const sent = request(
      gateway.url + path,
      { ca, servername: 'localhost', agent: false, headers, ...options },
      (answer) => {
        let text = ''
        answer.on('data', (chunk) => {
          text += chunk
        })
        answer.on('end', () =>
          resolve({
            status: answer.statusCode!,
            code: JSON.parse(text).code,
            nonce: String(answer.headers['dpop-nonce']),
          }),
        )
      },
    )
    sent.on('error', reject).end()
  })

test('is good on connections with that certificate only', async () => {
  const authorization = `Bearer ${await gateway.issuer.sign({ cnf: { 'x5t#S256': thumbprint(alice.cert) } })}`
  const refused = { status: 401, code: 'invalid_token' }
  expect((await ask('/x', { authorization }, alice)).status).toBe(200)
  expect(await ask('/x', { authorization }, bob)).toMatchObject(refused)
  expect(await ask('/x', { authorization })).toMatchObject(refused)
  const told = { authorization, 'client-cert': `:${Buffer.from(alice.cert).toString('base64')}:` }
  expect(await ask('/x', told), 'what a client says of itself').toMatchObject(refused)
  const session = await openHttp2(gateway.url, { ca, ...alice })
  try {
    expect((await session.send({ ':path': '/x', authorization })).status).toBe(200)
  } finally {
    session.close()
  }
})

test('and to a key as well needs both', async () => {
  const client = await newDpopClient()
  const token = await gateway.issuer.sign({ cnf: { ...client.cnf, 'x5t#S256': thumbprint(alice.cert) } })
  const url = `${gateway.url}/bound`
  const { nonce } = await ask('/bound', await client.fields({ url, token }), alice)
  expect((await ask('/bound', await client.fields({ url, token, nonce }), alice)).status).toBe(200)
  expect((await ask('/bound', await client.fields({ url, token, nonce }), bob)).code).toBe('invalid_token')
  expect((await ask('/bound', { authorization: `DPoP ${token}` }, alice)).code).toBe('invalid_dpop_proof')
})
