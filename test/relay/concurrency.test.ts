import { expect, test } from 'vitest'
import { createHookLoads } from '../../relay/concurrency.ts'

const opened = () => createHookLoads({ perHook: 4, maxLanes: 64 }).of('hook')
const answered = { succeeded: true, durationMs: 2, stop: false }

test('no more than so many turns at a time, in the order in which they were asked for', async () => {
  const load = opened()
  const order: number[] = []
  let running = 0
  let most = 0
  const work = (number: number) => async () => {
    order.push(number)
    running += 1
    most = Math.max(most, running)
    await new Promise(setImmediate)
    running -= 1
    if (number % 3 === 0) throw new Error('one that fails gives its turn back as well')
  }
  await Promise.allSettled(Array.from({ length: 20 }, (_, number) => load.inTurn(work(number))))
  expect(most).toBe(4)
  expect(order).toEqual(Array.from({ length: 20 }, (_, number) => number))
})

test('what a hook gets through counts what is under way, what waits, and what is expected', async () => {
  const load = opened()
  load.learn(answered)
  expect(load.capacity(100)).toEqual({ ofOne: 50, more: 200 })
  const { promise, resolve } = Promise.withResolvers<void>()
  const turns = Array.from({ length: 6 }, () => load.inTurn(() => promise))
  load.expect(90)
  expect(load.capacity(100)).toEqual({ ofOne: 50, more: 200 - 4 - 2 - 90 })
  load.expect(-90)
  resolve()
  await Promise.all(turns)
  expect(load.capacity(100)).toEqual({ ofOne: 50, more: 200 })
})

test('a receiver is prompt once it has answered quickly, and not while an attempt hangs or after a failure', async () => {
  const load = opened()
  expect(load.isPrompt()).toBe(false)
  load.learn(answered)
  expect(load.isPrompt()).toBe(true)
  const end = load.watch()
  await expect.poll(() => load.isPrompt()).toBe(false)
  end()
  expect(load.isPrompt()).toBe(true)
  load.learn({ ...answered, succeeded: false })
  expect(load.isPrompt()).toBe(false)
})

test('a hook with something under way is not forgotten, however many others there are', async () => {
  const loads = createHookLoads({ perHook: 4, maxLanes: 64 })
  const [busy, awaited] = [loads.of('busy'), loads.of('awaited')]
  const { promise, resolve } = Promise.withResolvers<void>()
  const turn = busy.inTurn(() => promise)
  awaited.expect(1)
  for (let other = 0; other < 3_000; other += 1) loads.of(`other ${other}`)
  expect(loads.of('busy')).toBe(busy)
  expect(loads.of('awaited')).toBe(awaited)
  resolve()
  await turn
})
