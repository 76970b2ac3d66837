import { expect, test } from 'vitest'
import { createConcurrency } from '../../relay/concurrency.ts'

test('no more POSTs to a hook at a time than allowed, in the order in which they were asked for', async () => {
  const hook = createConcurrency({ perHook: 4, maxLanes: 64 }).of('hook')
  const order: number[] = []
  let running = 0
  let most = 0
  const work = (number: number) => async () => {
    order.push(number)
    running += 1
    most = Math.max(most, running)
    await new Promise(setImmediate)
    running -= 1
    if (number % 3 === 0) throw new Error('one that fails makes room as well')
  }
  await Promise.allSettled(Array.from({ length: 20 }, (_, number) => hook.post(work(number))))
  expect(most).toBe(4)
  expect(order).toEqual(Array.from({ length: 20 }, (_, number) => number))
})

test('a hook with something under way is not forgotten, however many others there are', () => {
  const concurrency = createConcurrency({ perHook: 4, maxLanes: 64 })
  const busy = concurrency.of('busy')
  busy.begin()
  for (let other = 0; other < 3_000; other += 1) concurrency.of(`other ${other}`)
  expect(concurrency.of('busy')).toBe(busy)
})
