import { describe, expect, test } from 'vitest'
import {
  defaultProbeSchedule,
  type HookHealth,
  healthAfter,
  isGivenUp,
  probeDelay,
} from '../../../relay/ledger/hook-health.ts'

const well: HookHealth = { failures: 0, failingForMs: 0, lane: null, widely: false, open: false, probes: 0 }
const failure = (lane: string) => ({ succeeded: false, lane })
const success = (lane: string) => ({ succeeded: true, lane })
const failures = (count: number, ...lanes: string[]) =>
  Array.from({ length: count }, (_, index) => failure(lanes[index % lanes.length]!))

describe('the circuit breaker', () => {
  test('opens after five failures in a row over two lanes', () => {
    expect(healthAfter(well, failures(4, 'a', 'b')).open).toBe(false)
    expect(healthAfter(well, failures(5, 'a', 'b')).open).toBe(true)
    expect(healthAfter(well, [...failures(4, 'a'), failure('b')]).open).toBe(true)
  })

  test('opens only after ten in one lane, which may fail for reasons of its own', () => {
    expect(healthAfter(well, failures(9, 'a')).open).toBe(false)
    expect(healthAfter(well, failures(10, 'a')).open).toBe(true)
  })

  test('counts failures in a row: a success between begins anew', () => {
    const outcomes = [...failures(4, 'a', 'b'), success('c'), ...failures(4, 'a', 'b')]
    expect(healthAfter(well, outcomes)).toMatchObject({ open: false, failures: 4 })
  })

  test('goes on counting where the last relay stopped', () => {
    const before = healthAfter(well, failures(3, 'a'))
    expect(healthAfter(before, [failure('b')])).toMatchObject({ open: false, failures: 4, widely: true })
    expect(healthAfter(before, failures(2, 'b')).open).toBe(true)
  })

  test('closes with the first success', () => {
    const open = healthAfter(well, failures(12, 'a', 'b'))
    expect(open).toMatchObject({ open: true, probes: 7 })
    expect(healthAfter(open, [success('a')])).toEqual(well)
  })

  test('probes less and less often, a fifth earlier or later', () => {
    const [s, m] = [1_000, 60_000]
    const middle = [0, 1, 2, 3, 4, 5, 6, 99].map((probes) => probeDelay({ probes, random: 0.5 }))
    expect(middle).toEqual([30 * s, m, 2 * m, 5 * m, 10 * m, 15 * m, 15 * m, 15 * m])
    expect(probeDelay({ probes: 0, random: 0 })).toBe(defaultProbeSchedule[0]! * 0.8)
    expect(probeDelay({ probes: 0, random: 0.999_999 })).toBeCloseTo(defaultProbeSchedule[0]! * 1.2, -2)
  })
})

test('a hook is given up when nothing has succeeded for five days', () => {
  const days = (count: number) => count * 86_400_000
  expect(isGivenUp({ ...well, failures: 20, failingForMs: days(5) - 1 })).toBe(false)
  expect(isGivenUp({ ...well, failures: 20, failingForMs: days(5) })).toBe(true)
  expect(isGivenUp({ ...well, failures: 0, failingForMs: days(9) })).toBe(false)
})
