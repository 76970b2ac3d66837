import { describe, expect, test } from 'vitest'
import { consequences } from '../../relay/deliver.ts'
import { defaultSchedule, retryAfterMs, retryDelay } from '../../relay/retry-schedule.ts'

const now = new Date('2026-01-02T03:04:05Z')

describe('the schedule', () => {
  test('is at once, 5 s, 5 m, 30 m, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h; then nothing', () => {
    const inTheMiddle = Array.from({ length: 10 }, (_, index) => retryDelay({ attempts: index + 1, random: 0.5 }))
    const [s, m, h] = [1_000, 60_000, 3_600_000]
    expect(inTheMiddle).toEqual([5 * s, 5 * m, 30 * m, 2 * h, 5 * h, 10 * h, 14 * h, 20 * h, 24 * h, undefined])
  })

  test('varies by a fifth either way', () => {
    for (const [index, planned] of defaultSchedule.entries()) {
      expect(retryDelay({ attempts: index + 1, random: 0 })).toBe(planned * 0.8)
      expect(retryDelay({ attempts: index + 1, random: 0.999_999_999 })).toBeCloseTo(planned * 1.2, -2)
    }
  })

  test('never comes before what the receiver asked for', () => {
    expect(retryDelay({ attempts: 1, random: 0, retryAfterMs: 5_000 })).toBe(5_000)
    expect(retryDelay({ attempts: 1, random: 0, retryAfterMs: 60_000 })).toBe(60_000)
    expect(retryDelay({ attempts: 2, random: 0, retryAfterMs: 1_000 })).toBe(240_000)
    expect(retryDelay({ attempts: 10, random: 0, retryAfterMs: 1_000 })).toBeUndefined()
  })
})

test.each([
  ['7', 7_000],
  [' 7 ', 7_000],
  ['0', 0],
  ['Fri, 02 Jan 2026 03:05:05 GMT', 60_000],
  ['Fri, 02 Jan 2026 03:00:00 GMT', 0],
  ['2592000', 86_400_000],
  ['Fri, 02 Jan 2027 03:05:05 GMT', 86_400_000],
  ['-1', undefined],
  ['1e99', undefined],
  ['120.5', undefined],
  ['99999999999999999999', undefined],
  ['2026-01-02T03:05:05Z', undefined],
  ['soon', undefined],
  ['', undefined],
  [undefined, undefined],
])('Retry-After: %s', (header, expected) => {
  expect(retryAfterMs(header, now)).toBe(expected)
})

describe('what an answer means', () => {
  const meaning = (status: number | null, headers: Record<string, string> = {}, attempts = 1) =>
    consequences(
      { succeeded: status !== null && status >= 200 && status < 300, status, headers },
      { attempts, schedule: defaultSchedule, now, random: 0.5 },
    )

  test('2xx is success, everything else is tried again', () => {
    for (const status of [200, 201, 204, 299]) expect(meaning(status)).toEqual({ state: 'succeeded', retryInMs: 0 })
    for (const status of [null, 300, 301, 302, 304, 307, 400, 401, 404, 500, 502])
      expect(meaning(status)).toEqual({ state: 'retrying', retryInMs: 5_000 })
  })

  test('410 disables the hook and keeps the delivery', () => {
    expect(meaning(410)).toEqual({ state: 'retrying', retryInMs: 0, disableHook: 'The receiver answered 410 Gone.' })
  })

  test('429 and 503 with Retry-After pause the hook, others only the event', () => {
    expect(meaning(429, { 'retry-after': '30' })).toEqual({ state: 'retrying', retryInMs: 30_000, pauseHookMs: 30_000 })
    expect(meaning(503, { 'retry-after': '30' })).toEqual({ state: 'retrying', retryInMs: 30_000, pauseHookMs: 30_000 })
    expect(meaning(500, { 'retry-after': '30' })).toEqual({ state: 'retrying', retryInMs: 30_000 })
    expect(meaning(429)).toEqual({ state: 'retrying', retryInMs: 5_000 })
  })

  test('the tenth failure is the last', () => {
    expect(meaning(500, {}, 9)).toEqual({ state: 'retrying', retryInMs: 86_400_000 })
    expect(meaning(500, {}, 10)).toEqual({ state: 'dead', retryInMs: 0 })
  })
})
