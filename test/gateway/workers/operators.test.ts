import { X509Certificate } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Agent, fetch } from 'undici'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createAuthority, type ServerCertificate } from '../../support/certificates.ts'
import { type GatewayWorkers, startGatewayWorkers } from '../../support/gateway-workers.ts'
import { runProcess } from '../../support/process.ts'
import { startTarget } from '../../support/targets.ts'
import { until } from '../../support/until.ts'

/** What operators are told of several workers: the same as of one process. */

const surrogate = fileURLToPath(new URL('../../../bin/surrogate.ts', import.meta.url))
let ill: Awaited<ReturnType<typeof startTarget>>
let well: Awaited<ReturnType<typeof startTarget>>
let folder: string
let pair: ServerCertificate
let gateway: GatewayWorkers

beforeAll(async () => {
  ill = await startTarget()
  well = await startTarget()
  ill.checkStatus = 503
  folder = await mkdtemp(join(tmpdir(), 'surrogate-operators-'))
  const authority = createAuthority()
  pair = authority.issue('api.example.test')
  authority.remove()
  await writeFile(join(folder, 'a.pem'), pair.cert)
  await writeFile(join(folder, 'a.key'), pair.key)
  gateway = await startGatewayWorkers({
    listen: { port: 0, tls: { certificates: [{ cert: join(folder, 'a.pem'), key: join(folder, 'a.key') }] } },
    upstreams: {
      orders: {
        targets: [{ url: ill.url, labels: { track: 'canary' } }, { url: well.url }],
        health: { path: '/healthz', interval: '1s', timeout: '1s' },
        slowStart: '0s',
      },
    },
    routes: [{ id: 'all', path: '/**', auth: 'none', upstream: 'orders' }],
    allowInsecure: ['public-by-default'],
  })
})
afterAll(async () => {
  await gateway?.close()
  await Promise.all([ill?.close(), well?.close()])
  if (folder) await rm(folder, { recursive: true })
})

const checksOf = async () => (await gateway.readiness()).checks

test('/readyz has the targets, and inspect the sum of what workers sent to each', async () => {
  const told = `1 of 2 well; ${ill.url} fails its checks (status 503)`
  await until(async () =>
    expect(await checksOf()).toMatchObject({
      'gateway workers': { ok: true, detail: '2 of 2 serve' },
      'gateway targets orders': { ok: true, detail: told },
    }),
  )
  // On connections of their own, so that both workers have some.
  const before = well.requests
  for (let at = 0; at < 6; at++) {
    const dispatcher = new Agent({ connect: { rejectUnauthorized: false } })
    await (await fetch(`${gateway.url}/x`, { dispatcher })).text()
    await dispatcher.close()
  }
  const shown = await runProcess(process.execPath, [surrogate, 'gateway', 'inspect', '--json'], {
    cwd: gateway.folder,
  })
  expect(shown.code, shown.output).toBe(0)
  expect(JSON.parse(shown.output)).toMatchObject({
    upstreams: [
      {
        name: 'orders',
        targets: [
          { name: ill.url, state: 'out', health: 'unhealthy', reason: 'status 503', labels: { track: 'canary' } },
          { name: well.url, state: 'in', health: 'healthy', answered: well.requests - before },
        ],
      },
    ],
  })
})

test('certificates are told of as one, also when a new pair cannot be used', async () => {
  const expiry = Date.parse(new X509Certificate(pair.cert).validTo) / 1_000
  const metrics = await gateway.metrics()
  const told = (name: string) => Number(metrics.match(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm'))?.[1])
  expect(told('surrogate_gateway_certificate_expiry_seconds')).toBe(expiry)
  expect(told('surrogate_gateway_certificates_stale')).toBe(0)

  await writeFile(join(folder, 'a.pem'), 'no certificate')
  await until(async () => {
    const text = await gateway.metrics()
    expect(text).toMatch(/^surrogate_gateway_certificate_reloads_total\{outcome="refused"\} 2$/m)
    expect(text).toMatch(/^surrogate_gateway_certificates_stale 1$/m)
  })
  expect((await checksOf())['gateway certificates']).toMatchObject({
    ok: true,
    detail: expect.stringContaining('holds no certificate in PEM'),
  })
})
