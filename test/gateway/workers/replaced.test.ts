import { expect, onTestFinished, test } from 'vitest'
import { connectExtAuthz } from '../../support/ext-authz.ts'
import { freePort } from '../../support/free-port.ts'
import { startUpstream } from '../../support/gateway.ts'
import { startGatewayWorkers } from '../../support/gateway-workers.ts'
import { inspectionAudience, inspectionClient } from '../../support/inspection.ts'
import { createTlsFiles, openHttp2 } from '../../support/tls-listener.ts'
import { startTokenIssuer } from '../../support/token-issuer.ts'
import { until } from '../../support/until.ts'

test('a worker that takes the place of another has the listeners that the gateway was started with', async () => {
  const files = createTlsFiles()
  onTestFinished(() => files.remove())
  const upstream = await startUpstream()
  onTestFinished(() => upstream.close())
  const issuer = await startTokenIssuer()
  onTestFinished(() => issuer.close())
  const [extAuthzPort, inspectionPort] = [await freePort(), await freePort()]
  const inForce = (id: string) => ({
    allowInsecure: ['http-issuer', 'no-revocations'],
    trustedProxies: ['127.0.0.1'],
    issuers: [{ issuer: issuer.issuer }],
    upstreams: { api: { url: upstream.url } },
    routes: [{ id, path: '/x', auth: 'none', upstream: 'api' }],
  })
  const gateway = await startGatewayWorkers({
    ...inForce('before'),
    listen: { port: 0, tls: { certificates: [files.pair('localhost')] } },
    extAuthz: { port: extAuthzPort },
    inspection: { port: inspectionPort, audience: inspectionAudience },
  })
  onTestFinished(() => gateway.close())
  await until(async () => expect(await gateway.readiness()).toMatchObject({ ok: true }))

  // All of them count from the next start, which is told.
  await gateway.write(inForce('after'))
  await gateway.child.waitFor(/"members":\["listen","extAuthz","inspection"\][^\n]*count from the next start/)
  const before = gateway.workers()
  for (const pid of before) process.kill(pid, 'SIGKILL')
  await until(() => expect(gateway.workers().filter((pid) => !before.includes(pid))).toHaveLength(2))
  await until(async () => expect(await gateway.readiness()).toMatchObject({ ok: true }))

  const session = await openHttp2(gateway.url, { ca: files.authority.certificate })
  expect(await session.send({ ':path': '/x' })).toMatchObject({ status: 200 })
  session.close()
  for (const _ of [1, 2]) {
    const envoy = connectExtAuthz(extAuthzPort)
    expect(await envoy.check({ path: '/x' })).toMatchObject({ allowed: true, metadata: { route: 'after' } })
    envoy.close()
  }

  // Of an API that is away for a while nothing is lost.
  await gateway.write({ ...inForce('again'), inspection: { port: inspectionPort, audience: inspectionAudience } })
  const client = inspectionClient(() => `http://127.0.0.1:${inspectionPort}`, issuer)
  await until(async () => {
    const { decisions } = await client.get('decisions', '/decisions?route=after')
    expect(decisions).toHaveLength(3)
  })
})
