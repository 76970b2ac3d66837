import { expect, test } from 'vitest'
import { createEjection } from '../../../../gateway/upstream/targets/ejection.ts'

const settings = { consecutiveFailures: 3, for: 1_000, maxShare: 0.5 }

/** Fails it until it is out; returns for how long. */
const failAt = (ejection: ReturnType<typeof createEjection>, now: number): number => {
  while (!ejection.failed(settings, now));
  return ejection.until - now
}

test('failures in a row take a target out; an answer between them begins a new row', () => {
  const ejection = createEjection()
  expect([1, 2].map(() => ejection.failed(settings, 0))).toEqual([false, false])
  ejection.answered()
  expect([1, 2, 3].map(() => ejection.failed(settings, 10))).toEqual([false, false, true])
  expect([ejection.until, ejection.count]).toEqual([1_010, 1])
})

test('what fails while it is out counts for nothing', () => {
  const ejection = createEjection()
  failAt(ejection, 0)
  expect([1, 2, 3, 4].map(() => ejection.failed(settings, 999))).toEqual([false, false, false, false])
  expect([1, 2, 3].map(() => ejection.failed(settings, 1_000))).toEqual([false, false, true])
})

test('longer each time, ten times as long at most, and shorter again for each while that it was well', () => {
  const ejection = createEjection()
  const lengths: number[] = []
  for (let time = 0, now = 0; time < 12; time++) {
    lengths.push(failAt(ejection, now))
    now = ejection.until
  }
  expect(lengths).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10].map((times) => times * 1_000))
  expect(failAt(ejection, ejection.until + 4_500)).toBe(7_000)
  expect(failAt(ejection, ejection.until + 60_000)).toBe(1_000)
})
