import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { json, startBodyGateway } from '../../support/body-policies.ts'
import { inspectionAudience, inspectionClient } from '../../support/inspection.ts'
import { until } from '../../support/until.ts'

/** Where rules see bodies longer than a usual input, inspection asks them about the same. */

const start = async () => {
  const gateway = await startBodyGateway({
    route: { policyBody: { type: 'json', maxBytes: '256kB' } },
    config: () => ({
      inspection: { port: 0, audience: inspectionAudience },
      decisionLog: { to: '/dev/null', body: 'keep' },
    }),
  })
  return { gateway, client: inspectionClient(() => gateway.inspectionUrl!, gateway.issuer) }
}

const body = (amount: number) => ({ amount, note: 'x'.repeat(250_000) })

test('a denial because of a long body is asked again as it was', async () => {
  const { gateway, client } = await start()
  const answer = await gateway.call('/payments', { method: 'POST', headers: json, body: JSON.stringify(body(1_000)) })
  expect(answer.status).toBe(403)
  const id = answer.headers.get('x-request-id')
  const why = await until(() => client.get('why', `/decisions/${id}/why`))
  expect(why.refusal).toMatchObject({ stage: 'policy', code: 'policy_denied' })
  expect(why.notes).toEqual([])
})

test('an input may be as long as those of routes', async () => {
  const { client } = await start()
  const entrypoint = 'app/decision'
  const ask = (amount: number) => client.post('/evaluate', { entrypoint, input: { request: { body: body(amount) } } })
  expect(await ask(1)).toMatchObject({ status: 200, body: { result: { allow: true } } })
  expect(await ask(1_000)).toMatchObject({ status: 200, body: { result: { reason: 'too_much' } } })
})

test('whoever waits to be told that a body is wanted is told', async () => {
  const { gateway, client } = await start()
  const body = JSON.stringify({ entrypoint: 'app/decision', input: { request: {} } })
  const socket = connect(Number(new URL(gateway.inspectionUrl!).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  let received = ''
  socket.on('data', (chunk) => {
    received += chunk
    if (/^HTTP\/1\.1 100 /.test(received)) socket.write(body)
  })
  const head = (token: string) =>
    `POST /evaluate HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nExpect: 100-continue\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`
  socket.write(head(await client.token()))
  await until(() => expect(received).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /))
})
