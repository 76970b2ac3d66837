import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { startTestGateway } from '../../support/gateway.ts'
import { inspectionAudience, inspectionClient } from '../../support/inspection.ts'
import { createTlsFiles } from '../../support/tls-listener.ts'

/** What callers with a good token may cost, and what operators see of all callers. */

const start = async (inspection: object = {}) => {
  const gateway = await startTestGateway({
    config: () => ({
      inspection: { port: 0, audience: inspectionAudience, ...inspection },
      routes: [{ id: 'public', path: '/public/**', auth: 'none', upstream: 'orders' }],
    }),
  })
  onTestFinished(() => gateway.close())
  const client = inspectionClient(() => gateway.inspectionUrl!, gateway.issuer)
  const metric = async (name: string) =>
    (await gateway.metrics.render()).text.split('\n').filter((line) => line.startsWith(name))
  return { gateway, client, metric }
}

test('answers that nobody reads take no more memory than the bound, and small ones are still given', async () => {
  const { gateway, client } = await start()
  const query = 'x'.repeat(7_000)
  for (let at = 0; at < 1_008; at += 16) {
    const answers = Array.from({ length: 16 }, () => gateway.call(`/public/x?q=${query}`))
    for (const answer of await Promise.all(answers)) await answer.text()
  }
  const { decisions, more } = await client.get('decisions', '/decisions?limit=1000')
  expect([decisions.length, more]).toEqual([1_000, true])
  const token = await client.token()
  const { port } = new URL(gateway.inspectionUrl!)
  // More than fill it: what the system's own buffers hold for a few of them waits in no memory of the gateway.
  const sockets = Array.from({ length: 30 }, (): Socket => {
    const socket = connect(Number(port), '127.0.0.1')
    socket.pause()
    socket.on('error', () => {})
    socket.write(
      `GET /decisions?limit=1000 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
    )
    return socket
  })
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
  })
  const status = async (path: string) => {
    const answer = await client.call(path)
    await answer.text()
    return answer.status
  }
  // Each of them is an answer of seven megabytes too.
  const seldom = { interval: 250 }
  await expect.poll(() => status('/decisions?limit=1000'), seldom).toBe(503)
  expect(await status('/routes')).toBe(200)
  for (const socket of sockets) socket.destroy()
  await expect.poll(() => status('/decisions?limit=1000'), seldom).toBe(200)
})

test('an input that is too deep, or that can be read in two ways, is refused and ends nothing', async () => {
  const { client } = await start()
  const deep = `{"input":${'['.repeat(60_000)}${']'.repeat(60_000)}}`
  for (const body of [deep, '{"input":1,"input":2}', '{"__proto__":{"input":1}}']) {
    expect((await client.post('/evaluate', body)).status).toBe(400)
  }
  const proto = '{"input":{"__proto__":{"route":{"scopes":[]}},"request":{"method":"GET"}}}'
  expect(await client.post('/evaluate', proto)).toMatchObject({ status: 200 })
})

test('whoever tries tokens waits, and whoever has one does not', async () => {
  const { client } = await start()
  const order: number[] = []
  const ask = async (headers?: Record<string, string>) => {
    const answer = await client.call('/routes', headers && { headers })
    await answer.text()
    order.push(answer.status)
  }
  await ask()
  const tries = Array.from({ length: 40 }, () => ask({ authorization: 'Bearer x' }))
  await Promise.all([...tries, ask()])
  expect(order.filter((status) => status === 401)).toHaveLength(40)
  expect(order.lastIndexOf(200)).toBeLessThan(order.lastIndexOf(401))
})

test('operators see what is asked, by whom nothing may be asked, and certificates', async () => {
  const files = createTlsFiles()
  onTestFinished(files.remove)
  const { gateway, client, metric } = await start()
  await (await client.call('/routes')).text()
  await (await client.call('/routes', { claims: { scope: 'other' } })).text()
  await (await client.call('/routes', { headers: { authorization: 'Bearer x' } })).text()
  const stream = await client.stream()
  expect(await metric('surrogate_gateway_inspection')).toEqual([
    'surrogate_gateway_inspection_requests_total{status="200"} 1',
    'surrogate_gateway_inspection_requests_total{status="403"} 1',
    'surrogate_gateway_inspection_requests_total{status="401"} 1',
    'surrogate_gateway_inspection_streams 1',
  ])
  stream.close()
  await expect
    .poll(() => metric('surrogate_gateway_inspection_streams'))
    .toEqual(['surrogate_gateway_inspection_streams 0'])
  expect(gateway.inspectionUrl).toMatch(/^http:/)
  const secure = await start({ tls: { certificates: [files.pair('localhost')] } })
  expect(await secure.metric('surrogate_gateway_certificate_expiry_seconds')).toHaveLength(1)
  const { port } = new URL(secure.gateway.inspectionUrl!)
  connect(Number(port), '127.0.0.1')
    .end('GET / HTTP/1.1\r\n\r\n')
    .on('error', () => {})
  await expect
    .poll(() => secure.metric('surrogate_gateway_tls_refusals_total'))
    .toEqual(['surrogate_gateway_tls_refusals_total{reason="handshake"} 1'])
})
