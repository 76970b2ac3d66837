import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { startUpstream } from '../../support/gateway.ts'
import { startGatewayWorkers } from '../../support/gateway-workers.ts'
import { startOtlpCollector } from '../../support/otlp-collector.ts'
import { startProcess } from '../../support/process.ts'
import { until } from '../../support/until.ts'

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const surrogate = fileURLToPath(new URL('../../../bin/surrogate.ts', import.meta.url))

/** Prints what of OpenTelemetry a process asks for, its workers too. prom-client has always asked for the API. */
const watcher = `
import { registerHooks } from 'node:module'
registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context)
    const { parentURL = '' } = context
    if (found.url.includes('@opentelemetry') && !/@opentelemetry|prom-client/.test(parentURL))
      process.stderr.write('LOADED ' + found.url + ' BY ' + parentURL + '\\n')
    return found
  },
})
`

const startWatched = async (workers: number, telemetry?: object) => {
  const folder = await mkdtemp(join(tmpdir(), 'telemetry-'))
  cleanup.push(() => rm(folder, { recursive: true }))
  const upstream = await startUpstream()
  cleanup.push(upstream.close)
  await writeFile(join(folder, 'watcher.mjs'), watcher)
  await writeFile(
    join(folder, 'gateway.yaml'),
    stringify({
      ...{ version: 1, workers, listen: { port: 0 }, admin: { port: 0 } },
      ...(telemetry && { telemetry }),
      upstreams: { api: { url: upstream.url } },
      routes: [{ id: 'open', path: '/open/**', auth: 'none', upstream: 'api' }],
    }),
  )
  const child = startProcess(process.execPath, [surrogate, 'gateway', '--config', join(folder, 'gateway.yaml')], {
    cwd: folder,
    env: { NODE_OPTIONS: `--import=${pathToFileURL(join(folder, 'watcher.mjs'))}` },
  })
  cleanup.push(async () => {
    child.signalGroup('SIGKILL')
    await child.exited
  })
  const [, url = ''] = await child.waitFor(/"url":"(https?:[^"]+)"[^\n]*the gateway listens/)
  const { status } = await fetch(`${url}/open/1`, {
    headers: { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' },
  })
  expect(status).toBe(200)
  child.signal('SIGTERM')
  await child.exited
  return child.output().match(/LOADED .*/g) ?? []
}

describe('nothing of OpenTelemetry is loaded', () => {
  test.each([1, 2])('without telemetry, in %d process(es)', async (workers) => {
    expect(await startWatched(workers)).toEqual([])
  })

  test('which would be seen', async () => {
    const loaded = await startWatched(1, { otlp: 'http://127.0.0.1:9' })
    expect(loaded).toContainEqual(expect.stringContaining('sdk-trace'))
  })
})

test('workers send traces, and the metrics of the whole gateway come from their primary process', async () => {
  const collector = await startOtlpCollector()
  const upstream = await startUpstream()
  cleanup.push(collector.close, upstream.close)
  const gateway = await startGatewayWorkers({
    telemetry: { otlp: collector.url, sample: '100%' },
    upstreams: { api: { url: upstream.url } },
    routes: [{ id: 'open', path: '/open/**', auth: 'none', upstream: 'api' }],
  })
  cleanup.push(gateway.close)
  const ask = () => fetch(`${gateway.url}/open/1`, { headers: { connection: 'close' } })
  const instances = () => new Set(collector.spans.map(({ resource }) => resource['service.instance.id']))
  let asked = 0
  // Connections go to the workers by how busy they are.
  await until(async () => {
    await Promise.all(Array.from({ length: 10 }, ask))
    asked += 10
    expect(instances().size).toBe(2)
  })
  gateway.child.signal('SIGTERM')
  await gateway.child.exited
  const servers = collector.spans.filter(({ kind }) => kind === 'SERVER')
  expect(servers).toHaveLength(asked)
  const totals = collector.metrics.filter(({ name }) => name === 'surrogate_gateway_requests_total')
  expect(totals).toMatchObject([{ points: [{ attributes: { route: 'open', status: '200' }, value: asked }] }])
  expect(instances()).not.toContain(totals[0]!.resource['service.instance.id'])
})
