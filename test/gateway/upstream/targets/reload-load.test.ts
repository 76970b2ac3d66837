import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, request } from 'undici'
import { afterEach, expect, test } from 'vitest'
import { startTestGateway } from '../../../support/gateway.ts'
import { startRawTarget, wellAnswer } from '../../../support/raw-targets.ts'
import { until } from '../../../support/until.ts'

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

test('targets that come and go under load cost no request, and those that are gone keep no connection', async () => {
  const started = () => startRawTarget((socket) => void setTimeout(() => socket.write(wellAnswer), 3))
  const targets = await Promise.all([1, 2, 3, 4].map(started))
  for (const target of targets) cleanup.push(() => target.close())
  const ejection = { consecutiveFailures: 1, for: '60s', maxShare: '100%' }
  const api = (...places: number[]) => ({
    upstreams: { api: { targets: places.map((place) => ({ url: targets[place]!.url })), ejection, slowStart: '0s' } },
  })
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-gateway-'))
  cleanup.push(() => rm(folder, { recursive: true }))
  const gateway = await startTestGateway({
    file: join(folder, 'gateway.yaml'),
    config: () => ({ ...api(0, 1), routes: [{ id: 'all', path: '/**', auth: 'none', upstream: 'api' }] }),
  })
  cleanup.push(() => gateway.close())
  const dispatcher = new Agent({ connections: 8 })
  cleanup.push(() => dispatcher.close())

  let running = true
  const statuses = new Set<number>()
  const load = Array.from({ length: 8 }, async () => {
    while (running) {
      const { statusCode, body } = await request(gateway.url, { dispatcher, method: 'POST', body: 'order' })
      await body.dump()
      statuses.add(statusCode)
    }
  })
  for (let turn = 1; turn <= 12; turn++) {
    const place = turn % 4
    const before = targets[(place + 1) % 4]!.heads.length
    await gateway.write(api(place, (place + 1) % 4))
    await gateway.reload()
    await until(() => expect(targets[(place + 1) % 4]!.heads.length).toBeGreaterThan(before))
  }
  // The targets 0 and 1 stay.
  await until(() => expect(targets.slice(2).map(({ sockets }) => sockets.size)).toEqual([0, 0]))
  running = false
  await Promise.all(load)
  expect([...statuses]).toEqual([200])
  await until(async () => {
    const { text } = await gateway.metrics.render()
    const series = [...text.matchAll(/gateway_target_(running|ejections_total)\{.*target="([^"]+)"\} (\d+)/g)]
    expect(series.map(([, name, target, value]) => [name, target, value]).toSorted()).toEqual(
      ['ejections_total', 'running'].flatMap((name) =>
        [targets[0]!.url, targets[1]!.url].toSorted().map((target) => [name, target, '0']),
      ),
    )
  })
})
