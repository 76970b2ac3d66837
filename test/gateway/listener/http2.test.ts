import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { createTlsFiles, openHttp2 } from '../../support/tls-listener.ts'

const files = createTlsFiles()
let gateway: TestGateway
let client: Awaited<ReturnType<typeof openHttp2>>
const ca = files.authority.certificate

beforeAll(async () => {
  const listen = { port: 0, tls: { certificates: [files.pair('localhost')] } }
  gateway = await startTestGateway({ config: () => ({ listen }) })
  client = await openHttp2(gateway.url, { ca })
})
afterAll(async () => {
  client.close()
  await gateway.close()
  files.remove()
})

const token = async () => `Bearer ${await gateway.issuer.sign({ scope: 'read:orders write:orders', client_id: 'c1' })}`

describe('a request over HTTP/2', () => {
  test('goes through the same stages as one over HTTP/1.1', async () => {
    const authorization = await token()
    const answer = await client.send({ ':path': '/orders/1?a=b', authorization, cookie: ['a=1', 'b=2'] })
    expect(answer.status).toBe(200)
    const seen = JSON.parse(answer.body)
    expect(seen).toMatchObject({
      method: 'GET',
      url: '/orders/1?a=b',
      headers: { cookie: 'a=1; b=2', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'localhost' },
      body: '',
    })
    expect(Object.keys(seen.headers).filter((name) => name.startsWith(':'))).toEqual([])
  })

  test('brings its body', async () => {
    const authorization = await token()
    for (const body of ['hello', 'x'.repeat(300_000)]) {
      const answer = await client.send({ ':method': 'POST', ':path': '/orders/1', authorization }, body)
      expect([answer.status, JSON.parse(answer.body).body.length]).toEqual([200, body.length])
      const announced = { 'content-length': body.length }
      const other = await client.send({ ':method': 'POST', ':path': '/orders/1', authorization, ...announced }, body)
      expect([other.status, JSON.parse(other.body).body.length]).toEqual([200, body.length])
    }
  })

  test('is refused with a problem document', async () => {
    const answer = await client.send({ ':path': '/orders/1' })
    expect([answer.status, JSON.parse(answer.body).code]).toEqual([401, 'token_missing'])
    expect(answer.headers['www-authenticate']).toMatch(/^Bearer/)
  })

  test('with a head only', async () => {
    const answer = await client.send({ ':method': 'HEAD', ':path': '/public/x' })
    expect([answer.status, answer.body]).toEqual([200, ''])
  })
})

test.each([
  ['another host than its authority', { ':authority': 'localhost', host: 'other.test' }],
  ['a scheme that is not https', { ':scheme': 'http' }],
  ['CONNECT', { ':method': 'CONNECT', ':scheme': undefined, ':path': undefined }],
  ['an asterisk', { ':method': 'OPTIONS', ':path': '*' }],
  ['a path of dots', { ':path': '/public/../x' }],
])('400 for %s', async (_, headers) => {
  const answer = await client.send({ ':path': '/public/x', ...headers })
  expect([answer.status, JSON.parse(answer.body).code]).toEqual([400, 'invalid_request'])
})
