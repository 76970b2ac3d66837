import { afterEach, expect, test } from 'vitest'
import { startTestGateway } from '../../../support/gateway.ts'
import { startTarget, startTargetProcess } from '../../../support/targets.ts'
import { until } from '../../../support/until.ts'

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const closing = <Closable extends { close(): Promise<unknown> }>(part: Closable): Closable => {
  cleanup.push(() => part.close())
  return part
}

const gatewayTo = async (upstream: object) =>
  closing(
    await startTestGateway({
      config: () => ({
        upstreams: { api: upstream },
        routes: [{ id: 'all', path: '/**', auth: 'none', upstream: 'api' }],
      }),
    }),
  )

const series = async (gateway: Awaited<ReturnType<typeof gatewayTo>>, name: string) =>
  (await gateway.metrics.render()).text.split('\n').filter((line) => line.startsWith(`${name}{`))

test('a process that dies costs some requests, then none', async () => {
  const dying = closing(await startTargetProcess())
  const well = closing(await startTarget())
  const gateway = await gatewayTo({
    targets: [{ url: dying.url }, { url: well.url }],
    balance: 'round-robin',
    ejection: { consecutiveFailures: 2, for: '1h' },
    slowStart: '0s',
  })
  const send = async () => (await fetch(gateway.url)).status
  expect([await send(), await send()]).toEqual([200, 200])
  dying.signal('SIGKILL')
  const failures: number[] = []
  await until(async () => {
    const status = await send()
    if (status !== 200) failures.push(status)
    expect((await gateway.health.ready()).checks['gateway targets api']!.detail).toBe(
      `1 of 2 well; ${dying.url} is ejected`,
    )
  })
  for (let sent = 0; sent < 20; sent++) expect(await send()).toBe(200)
  expect(failures.every((status) => status === 502)).toBe(true)
  expect(failures).toHaveLength(2)
  expect(await series(gateway, 'surrogate_gateway_target_used')).toContain(
    `surrogate_gateway_target_used{upstream="api",target="${dying.url}"} 0`,
  )
})

test('every request that began has ended: none is with a target when nothing is under way', async () => {
  const [one, other] = [closing(await startTarget()), closing(await startTarget())]
  one.answer = (request, response) => (request.url === '/lost' ? request.socket.destroy() : response.end('x'))
  other.answer = one.answer
  const gateway = await gatewayTo({ targets: [{ url: one.url }, { url: other.url }] })
  const gone = new AbortController()
  await Promise.allSettled([
    ...Array.from({ length: 50 }, () => fetch(`${gateway.url}/ok`)),
    ...Array.from({ length: 50 }, () => fetch(`${gateway.url}/lost`)),
    ...Array.from({ length: 50 }, () => fetch(`${gateway.url}/left`, { signal: gone.signal })),
    gone.abort(),
  ])
  await until(async () =>
    expect((await series(gateway, 'surrogate_gateway_target_running')).map((line) => line.split(' ')[1])).toEqual([
      '0',
      '0',
    ]),
  )
})

test('the same value of a header goes to the same target', async () => {
  const targets = [closing(await startTarget()), closing(await startTarget()), closing(await startTarget())]
  const gateway = await gatewayTo({
    targets: targets.map(({ url }) => ({ url })),
    balance: { hash: 'header:x-tenant' },
  })
  const send = (tenant: string) => fetch(gateway.url, { headers: { 'x-tenant': tenant } })
  for (let turn = 0; turn < 10; turn++) await send('one')
  expect(targets.map(({ requests }) => requests).toSorted()).toEqual([0, 0, 10])
  for (let turn = 0; turn < 60; turn++) await send(`tenant-${turn}`)
  expect(targets.every(({ requests }) => requests > 0)).toBe(true)
})
