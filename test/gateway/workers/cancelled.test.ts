import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { connectExtAuthz } from '../../support/ext-authz.ts'
import { freePort } from '../../support/free-port.ts'
import { startGatewayWorkers } from '../../support/gateway-workers.ts'
import { createTlsFiles, openHttp2 } from '../../support/tls-listener.ts'
import { until } from '../../support/until.ts'

test('what a client has left ends: over HTTP/2 its requests upstream, and connections for ext_authz', async () => {
  const files = createTlsFiles()
  onTestFinished(() => files.remove())
  let open = 0
  const api = createServer((_request, response) => {
    open++
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 0\n\n')
    response.on('close', () => open--)
  })
  await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void api.close())
  const extAuthzPort = await freePort()
  const gateway = await startGatewayWorkers({
    listen: { port: 0, tls: { certificates: [files.pair('localhost')] } },
    trustedProxies: ['127.0.0.1'],
    extAuthz: { port: extAuthzPort },
    upstreams: { api: { url: `http://127.0.0.1:${(api.address() as AddressInfo).port}` } },
    routes: [{ id: 'events', path: '/events', auth: 'none', upstream: 'api' }],
  })
  onTestFinished(() => gateway.close())
  for (const how of ['stream', 'session'] as const) {
    const { session, close } = await openHttp2(gateway.url, { ca: files.authority.certificate })
    onTestFinished(close)
    const stream = session.request({ ':path': '/events', ':authority': 'localhost' })
    stream.on('error', () => {})
    await new Promise((resolve) => stream.once('data', resolve))
    expect(open).toBe(1)
    if (how === 'stream') stream.close(8)
    else session.destroy()
    await until(() => expect(open, how).toBe(0))
  }

  // Neither do connections for Envoy stay.
  const envoy = connectExtAuthz(extAuthzPort)
  expect(await envoy.check({ path: '/events' })).toMatchObject({ allowed: true })
  const connections = async () => (await gateway.metrics()).match(/^surrogate_gateway_ext_authz_connections .*$/m)?.[0]
  expect(await connections()).toBe('surrogate_gateway_ext_authz_connections 1')
  envoy.close()
  await until(async () => expect(await connections()).toBe('surrogate_gateway_ext_authz_connections 0'))
})
