import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { createSharedParts } from '../../../../gateway/shared-parts.ts'
import { createMetrics } from '../../../../platform/metrics.ts'
import { startDnsServer, type Zone } from '../../../support/dns-server.ts'
import { startTestGateway } from '../../../support/gateway.ts'
import { openTargets, startTarget } from '../../../support/targets.ts'
import { until } from '../../../support/until.ts'

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const closing = <Closable extends { close(): Promise<unknown> }>(part: Closable): Closable => {
  cleanup.push(() => part.close())
  return part
}

/** Two configurations of one gateway, the second in force before the first is closed. */
const configurations = () => {
  const shared = createSharedParts()
  const parts = { use: shared.use, metrics: createMetrics() }
  return (members: Parameters<typeof openTargets>[0]) => openTargets(members, parts)
}

const ejection = { consecutiveFailures: 1, for: '60s' }
const health = { path: '/healthz', interval: '100ms', timeout: '100ms' }

describe('what is known of a target that stays', () => {
  test.each([
    ['other limits', { maxRequests: 5 }, true],
    ['another balancer', { balance: 'round-robin' } as const, true],
    ['another limit of failures', { ejection: { ...ejection, consecutiveFailures: 9 } }, true],
    ['another time limit for connections', { connectTimeout: '1s' }, false],
  ])('stays with %s', async (_, change, samePool) => {
    const [ill, well] = [closing(await startTarget()), closing(await startTarget())]
    ill.status = 503
    const open = configurations()
    const targets = [{ url: ill.url }, { url: well.url }]
    const before = open({ targets, ejection })
    await until(async () => {
      await before.send()
      expect(before.stateOf(ill.url)!.state).toBe('out')
    })
    const pool = before.targets.pick()!.pool

    const after = closing(open({ targets: [...targets].reverse(), ejection, ...change }))
    await before.close()
    expect(after.stateOf(ill.url)).toMatchObject({ state: 'out', ejections: 1, failed: 1 })
    expect(after.targets.pick()!.pool === pool).toBe(samePool)
    expect(await after.send()).toEqual({ name: well.url, outcome: 200 })
  })

  test('is what checks found too, with other settings of theirs', async () => {
    const [ill, well] = [closing(await startTarget()), closing(await startTarget())]
    ill.checkStatus = 500
    const open = configurations()
    const targets = [{ url: ill.url }, { url: well.url }]
    const before = open({ targets, health })
    await until(() => expect(before.stateOf(ill.url)!.state).toBe('out'))
    const after = closing(open({ targets, health: { ...health, interval: '30s' } }))
    await before.close()
    expect(after.stateOf(ill.url)).toMatchObject({ state: 'out', health: 'unhealthy' })
  })

  test('is what names led to, although nobody can be asked any more', async () => {
    const target = closing(await startTarget())
    const zone: Zone = { 'api.test': ['127.0.0.1', '127.0.0.2'] }
    const server = closing(await startDnsServer(zone))
    const open = configurations()
    const url = `http://api.test:${target.port}`
    const before = open({ url, dns: { refresh: '1s', servers: [server.address] } })
    await before.targets.ready
    zone['api.test'] = { broken: 'silent' }
    const after = closing(open({ url, dns: { refresh: '9s', servers: [server.address] } }))
    await after.targets.ready
    await before.close()
    expect(after.names()).toEqual([`${url} 127.0.0.1`, `${url} 127.0.0.2`])
  })
})

test('of a target that is no longer in the file nothing is left, once its requests have ended', async () => {
  const [gone, stays] = [closing(await startTarget()), closing(await startTarget())]
  const open = configurations()
  const before = open({ targets: [{ url: gone.url }, { url: stays.url }], balance: 'round-robin', health, ejection })
  await before.sendMany(2)
  await until(() => expect(gone.checks).toBeGreaterThan(0))
  const after = closing(open({ targets: [{ url: stays.url }], health, ejection }))
  expect((await after.metrics.render()).text).toContain(gone.url)
  await before.close()
  expect((await after.metrics.render()).text).not.toContain(gone.url)
  expect((await after.metrics.render()).text).toContain(
    `surrogate_gateway_target_requests_total{upstream="api",target="${stays.url}",outcome="answered"} 1`,
  )
})

test('a gateway tells of its targets after a reload what it told before', async () => {
  const [ill, well] = [closing(await startTarget()), closing(await startTarget())]
  ill.checkStatus = 500
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-targets-'))
  cleanup.push(() => rm(folder, { recursive: true }))
  const upstream = { targets: [{ url: ill.url }, { url: well.url }], health: { ...health, interval: '200ms' } }
  const gateway = closing(
    await startTestGateway({ file: join(folder, 'gateway.yaml'), config: () => ({ upstreams: { orders: upstream } }) }),
  )
  const detail = async () => (await gateway.health.ready()).checks['gateway targets orders']
  const found = { ok: true, detail: `1 of 2 well; ${ill.url} fails its checks (status 500)` }
  await until(async () => expect(await detail()).toEqual(found))
  const slower = { ...upstream, maxRequests: 7, health: { ...health, interval: '1m' } }
  await gateway.write({ upstreams: { orders: slower } })
  await gateway.reload()
  expect((await gateway.health.ready()).checks['gateway configuration']!.ok).toBe(true)
  expect((await detail())!.detail).toContain(`1 of 2 well; ${ill.url} fails its checks`)
  await gateway.write({ upstreams: { orders: { url: well.url } } })
  await gateway.reload()
  expect(await detail()).toBeUndefined()
})
