import { afterEach, expect, test } from 'vitest'
import { openTargets, startTarget, startTargetProcess } from '../../../support/targets.ts'
import { until } from '../../../support/until.ts'

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const closing = <Closable extends { close(): Promise<unknown> }>(part: Closable): Closable => {
  cleanup.push(() => part.close())
  return part
}
const urls = (...targets: readonly { url: string }[]) => targets.map(({ url }) => ({ url }))

const slowStart = '0s'
const health = { path: '/healthz', interval: '100ms', timeout: '50ms' }

test('a target whose checks fail gets no requests until they are good again', async () => {
  const [ill, well] = [closing(await startTarget()), closing(await startTarget())]
  ill.checkStatus = 500
  const api = closing(openTargets({ targets: urls(ill, well), slowStart, health: { ...health, timeout: '100ms' } }))
  expect(api.targets.states().map(({ state, health }) => [state, health])).toEqual([
    ['in', 'unknown'],
    ['in', 'unknown'],
  ])
  await until(() =>
    expect(api.targets.states()).toMatchObject([
      { state: 'out', health: 'unhealthy', reason: 'status 500' },
      { state: 'in', health: 'healthy' },
    ]),
  )
  expect(ill.checks).toBeGreaterThanOrEqual(3)
  await api.sendMany(10)
  expect([ill.requests, well.requests]).toEqual([0, 10])

  const checks = ill.checks
  ill.checkStatus = 200
  await until(() => expect(api.stateOf(ill.url)).toMatchObject({ state: 'in', health: 'healthy' }))
  expect(ill.checks).toBeGreaterThanOrEqual(checks + 2)
  await api.sendMany(20)
  expect(ill.requests).toBeGreaterThan(0)
  expect(api.lines.filter(({ target }) => target === ill.url).map(({ msg }) => msg)).toEqual([
    'the checks of a target are bad',
    'the checks of a target are good',
  ])
  expect(await api.series('surrogate_gateway_health_checks_total')).toEqual(
    expect.arrayContaining([expect.stringContaining(`target="${ill.url}",outcome="bad"`)]),
  )
})

test('a process that hangs is found, although connections to it open', async () => {
  const hanging = closing(await startTargetProcess())
  const well = closing(await startTarget())
  const api = closing(
    openTargets({
      targets: urls(hanging, well),
      slowStart,
      health: { ...health, interval: '300ms', timeout: '200ms' },
    }),
  )
  await until(() => expect(api.targets.states()).toMatchObject([{ health: 'healthy' }, { health: 'healthy' }]))
  hanging.signal('SIGSTOP')
  await until(() => expect(api.stateOf(hanging.url)).toMatchObject({ state: 'out', reason: 'no answer within 200 ms' }))
  hanging.signal('SIGCONT')
  await until(() => expect(api.stateOf(hanging.url)).toMatchObject({ state: 'in', health: 'healthy' }))
})

test('a process that is gone is found, and so is the one that takes its port', async () => {
  const first = closing(await startTargetProcess())
  const well = closing(await startTarget())
  const api = closing(openTargets({ targets: urls(first, well), slowStart, health: { ...health, timeout: '100ms' } }))
  first.signal('SIGKILL')
  await until(() => expect(api.stateOf(first.url)).toMatchObject({ state: 'out', reason: 'ECONNREFUSED' }))
  closing(await startTargetProcess(first.port))
  await until(() => expect(api.stateOf(first.url)).toMatchObject({ state: 'in', health: 'healthy' }))
})

test('one bad check between good ones takes nobody out', async () => {
  const [flapping, well] = [closing(await startTarget()), closing(await startTarget())]
  const api = closing(
    openTargets({
      targets: urls(flapping, well),
      health: { ...health, interval: '500ms', timeout: '500ms', unhealthyAfter: 2, status: [200, 204] },
    }),
  )
  await until(() => expect(api.stateOf(flapping.url)!.health).toBe('healthy'))
  const seen = new Set<string>()
  for (let turn = 0; turn < 4; turn++) {
    const before = flapping.checks
    flapping.checkStatus = turn % 2 === 0 ? 500 : 204
    await until(() => expect(flapping.checks).toBe(before + 1))
    seen.add(api.stateOf(flapping.url)!.health)
  }
  expect([...seen]).toEqual(['healthy'])
})

test('where the checks of all targets fail, all are used', async () => {
  const all = [closing(await startTarget()), closing(await startTarget())]
  for (const target of all) target.checkStatus = 404
  const api = closing(openTargets({ targets: urls(...all), health: { ...health, timeout: '100ms' } }))
  await until(() => expect(api.targets.states().map(({ state }) => state)).toEqual(['used', 'used']))
  await api.sendMany(20)
  expect(all.every(({ requests }) => requests > 0)).toBe(true)
})

test('checks go one at a time, and no more come when they take long', async () => {
  let open = 0
  let most = 0
  const slow = closing(await startTarget())
  const well = closing(await startTarget())
  slow.onCheck = (_, response) => {
    most = Math.max(most, ++open)
    response.once('close', () => open--)
  }
  const api = closing(openTargets({ targets: urls(slow, well), health: { ...health, timeout: '100ms' } }))
  await until(() => expect(slow.checks).toBeGreaterThan(4))
  expect([most, api.stateOf(slow.url)!.state]).toEqual([1, 'out'])
})
