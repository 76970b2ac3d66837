import { expect, test } from 'vitest'
import { backOffMs, createBackOff } from '../../platform/back-off.ts'

test('delays double from the first to the longest, and begin anew after a success', () => {
  const backOff = createBackOff({ first: 100, longest: 1_000 })
  expect([1, 2, 3, 4, 5, 6].map(() => backOff.next())).toEqual([100, 200, 400, 800, 1_000, 1_000])
  backOff.reset()
  expect(backOff.next()).toBe(100)
})

test('there is none before the first failure, and thousands of failures are no reason to wait for ever', () => {
  expect([backOffMs(0), backOffMs(1), backOffMs(10_000)]).toEqual([0, 100, 5_000])
})

test('jitter stays within its share', () => {
  const delays = Array.from({ length: 1_000 }, () => backOffMs(3, { first: 100, jitter: 0.25 }))
  expect(Math.min(...delays)).toBeGreaterThanOrEqual(300)
  expect(Math.max(...delays)).toBeLessThanOrEqual(500)
  expect(new Set(delays).size).toBeGreaterThan(900)
})
