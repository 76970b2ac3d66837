import { expect, onTestFinished, test } from 'vitest'
import { json, startBodyGateway } from '../../support/body-policies.ts'
import { type AskedRequest, connectExtAuthz } from '../../support/ext-authz.ts'

/** Rules about bodies that Envoy brings along (`with_request_body`). Up to 100 is allowed, and no body at all. */

const start = async () => {
  const gateway = await startBodyGateway({
    route: { upstream: undefined },
    config: () => ({ trustedProxies: ['127.0.0.1'], extAuthz: { port: 0 } }),
  })
  const envoy = connectExtAuthz(gateway.extAuthzPort)
  onTestFinished(() => envoy.close())
  const token = await gateway.issuer.sign({ client_id: 'c1' })
  return async ({ headers, ...asked }: AskedRequest) => {
    const fields = { authorization: `Bearer ${token}`, ...json, ...headers }
    const answer = await envoy.check({ path: '/payments', method: 'POST', headers: fields, ...asked })
    return answer.allowed ? answer.headers['x-amount'] : answer.status
  }
}

const whole = { 'x-envoy-auth-partial-body': 'false' }

test('decide by the body, as text and as bytes', async () => {
  const ask = await start()
  expect(await ask({ headers: whole, http: { body: '{"amount":100}' } })).toBe('100')
  expect(await ask({ headers: whole, http: { rawBody: Buffer.from('{"amount":7}') } })).toBe('7')
  expect(await ask({ headers: { ...whole, 'content-length': '12' }, http: { body: '{"amount":7}' } })).toBe('7')
  expect(await ask({ headers: whole, http: { body: '{"amount":101}' } })).toBe(403)
  expect(await ask({ headers: whole, http: { body: '{"amount":1,"amount":101}' } })).toBe(400)
})

test('are refused what is cut off, and what Envoy does not bring', async () => {
  const ask = await start()
  const cut = { 'x-envoy-auth-partial-body': 'true' }
  expect(await ask({ headers: cut, http: { body: '{"amount":1}' } })).toBe(500)
  expect(await ask({ http: { body: '{"amount":1}' } })).toBe(500)
  expect(await ask({ headers: { 'content-length': '14' } })).toBe(500)
  expect(await ask({ headers: { 'transfer-encoding': 'chunked' } })).toBe(500)
  expect(await ask({ http: { protocol: 'HTTP/2' } })).toBe(500)
})

/** Envoy removes `Transfer-Encoding` before its filters, and brings no body of an upgrade. */
test('are refused what may have a body that Envoy does not bring', async () => {
  const ask = await start()
  expect(await ask({})).toBe(500)
  expect(await ask({ method: 'GET', http: { size: 14 } })).toBe(500)
  expect(await ask({ headers: { 'content-length': '0' }, http: { size: 14 } })).toBe(500)
  expect(await ask({ method: 'GET', headers: { connection: 'upgrade', upgrade: 'websocket' } })).toBe(500)
})

test('see that there is none, where that is certain', async () => {
  const ask = await start()
  for (const protocol of ['HTTP/1.1', 'HTTP/2']) {
    expect(await ask({ headers: { 'content-length': '0' }, http: { protocol } })).toBe('none')
    expect(await ask({ method: 'GET', http: { protocol } })).toBe('none')
    expect(await ask({ method: 'GET', http: { protocol, size: 0 } })).toBe('none')
  }
})
