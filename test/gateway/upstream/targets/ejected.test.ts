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
const three = () => Promise.all([1, 2, 3].map(async () => closing(await startTarget())))
const urls = (targets: readonly { url: string }[]) => targets.map(({ url }) => ({ url }))

const balance = 'round-robin'
const slowStart = '0s'

test('a target that fails requests in a row gets none, and comes back by itself', async () => {
  const [broken, ...others] = await three()
  const api = closing(
    openTargets({
      targets: urls([broken!, ...others]),
      balance,
      slowStart,
      ejection: { consecutiveFailures: 4, for: '3s' },
    }),
  )
  broken!.status = 503
  await api.sendMany(12)
  expect(broken!.requests).toBe(4)
  expect(api.stateOf(broken!.url)).toMatchObject({ state: 'out', ejections: 1, failed: 4, answered: 0, running: 0 })
  await api.sendMany(6)
  expect(broken!.requests).toBe(4)
  expect(await api.series('surrogate_gateway_target_used')).toContain(
    `surrogate_gateway_target_used{upstream="api",target="${broken!.url}"} 0`,
  )
  expect(await api.series('surrogate_gateway_target_ejections_total')).toContain(
    `surrogate_gateway_target_ejections_total{upstream="api",target="${broken!.url}"} 1`,
  )
  expect(api.lines).toMatchObject([{ target: broken!.url, msg: 'a target is ejected: its requests fail' }])

  broken!.status = 200
  await until(async () => {
    await api.sendMany(3)
    expect(broken!.requests).toBeGreaterThan(4)
  })
  expect(api.stateOf(broken!.url)).toMatchObject({ state: 'in', ejections: 1 })
})

test('a process that dies is ejected, and the others are not', async () => {
  const dying = closing(await startTargetProcess())
  const others = [closing(await startTarget()), closing(await startTarget())]
  const api = closing(
    openTargets({ targets: urls([dying, ...others]), balance, ejection: { consecutiveFailures: 2, for: '60s' } }),
  )
  await api.sendMany(6)
  expect(api.stateOf(dying.url)).toMatchObject({ answered: 2, failed: 0 })
  dying.signal('SIGKILL')
  await until(async () => {
    await api.send()
    expect(api.stateOf(dying.url)).toMatchObject({ state: 'out', ejections: 1 })
  })
  expect(others.map(({ url }) => api.stateOf(url)!.state)).toEqual(['in', 'in'])
})

test('when more than maxShare would be out all are used, which is told', async () => {
  const [one, other, third] = await three()
  const api = closing(
    openTargets({
      targets: urls([one!, other!, third!]),
      balance,
      slowStart,
      ejection: { consecutiveFailures: 1, for: '60s' },
    }),
  )
  one!.status = 502
  await api.sendMany(3)
  expect([api.targets.isOverdrawn(), api.stateOf(one!.url)!.state]).toEqual([false, 'out'])
  other!.status = 502
  await api.sendMany(3)
  expect(api.targets.isOverdrawn()).toBe(true)
  expect(api.targets.states().map(({ state }) => state)).toEqual(['used', 'used', 'in'])
  const before = one!.requests
  await api.sendMany(3)
  expect(one!.requests).toBe(before + 1)
  expect(await api.series('surrogate_gateway_upstream_overdrawn')).toEqual([
    'surrogate_gateway_upstream_overdrawn{upstream="api"} 1',
  ])
  expect(api.lines.filter(({ msg }) => msg === 'too many targets are out: all of them are used')).toHaveLength(1)
})

test('even where all may be out, the last one is used', async () => {
  const [one, other] = await three()
  const api = closing(
    openTargets({ targets: urls([one!, other!]), ejection: { consecutiveFailures: 1, for: '60s', maxShare: '100%' } }),
  )
  one!.status = other!.status = 503
  await api.sendMany(6)
  expect((await api.send())!.outcome).toBe(503)
})

test('clients that leave say nothing about a target', async () => {
  const [one, other] = await three()
  const api = closing(openTargets({ targets: urls([one!, other!]), ejection: { consecutiveFailures: 1 } }))
  for (let turn = 0; turn < 20; turn++) {
    const target = api.targets.pick()!
    target.begin()
    target.end('neither')
  }
  expect(api.targets.states().map(({ state, failed }) => [state, failed])).toEqual([
    ['in', 0],
    ['in', 0],
  ])
})

test('a request goes to targets with its labels only, out or not, and to none that it was sent to before', async () => {
  const [canary, plain, other] = await three()
  const api = closing(
    openTargets({
      targets: [{ url: canary!.url, labels: { track: 'canary' } }, { url: plain!.url }, { url: other!.url }],
      ejection: { consecutiveFailures: 1, for: '60s' },
    }),
  )
  const labels = { track: 'canary' }
  canary!.status = 503
  expect(await api.send({ labels })).toEqual({ name: canary!.url, outcome: 503 })
  expect(api.stateOf(canary!.url)!.state).toBe('out')
  // There is no other one that would do.
  expect(await api.send({ labels })).toEqual({ name: canary!.url, outcome: 503 })
  expect(api.targets.pick({ labels, tried: [api.targets.pick({ labels })!] })).toBeUndefined()
  expect(api.targets.pick({ labels: { track: 'beta' } })).toBeUndefined()

  const first = api.targets.pick()!
  const second = api.targets.pick({ tried: [first] })!
  expect([first.name, second.name].toSorted()).toEqual([plain!.url, other!.url].toSorted())
  expect(api.targets.pick({ tried: [first, second] })).toBeUndefined()
})

test('one that comes back starts slowly', async () => {
  const [back, ...others] = await three()
  const api = closing(
    openTargets({
      targets: urls([back!, ...others]),
      slowStart: '2s',
      ejection: { consecutiveFailures: 1, for: '100ms' },
    }),
  )
  // Those that come together have the same share at any time, until each has its full one.
  const shares = () => api.targets.states().map(({ share }) => share)
  expect(new Set(shares())).toEqual(new Set([0.1]))
  await until(() => expect(shares()).toEqual([1, 1, 1]))
  back!.status = 503
  await until(async () => {
    await api.send()
    expect(api.stateOf(back!.url)!.ejections).toBe(1)
  })
  back!.status = 200
  await until(() => expect(api.stateOf(back!.url)!.state).toBe('in'))
  expect(shares()).toEqual([expect.toSatisfy((share: number) => share < 1), 1, 1])
  await until(() => expect(shares()).toEqual([1, 1, 1]))
})
