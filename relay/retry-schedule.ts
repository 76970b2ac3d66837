/**
 * When a delivery that failed is tried again. Pure: time and chance are arguments.
 * Delays in ms before attempts 2, 3, …; after the last one the delivery is given up.
 */
export const defaultSchedule: readonly number[] = [
  5_000, // 5 s
  300_000, // 5 m
  1_800_000, // 30 m
  7_200_000, // 2 h
  18_000_000, // 5 h
  36_000_000, // 10 h
  50_400_000, // 14 h
  72_000_000, // 20 h
  86_400_000, // 24 h
]

/** ±20 %, so that deliveries which failed together do not come back together. */
const jitter = 0.2
const maxRetryAfterMs = 86_400_000

export interface RetryQuestion {
  /** POSTs made so far, the failed one included. */
  attempts: number
  /** What the receiver asked for, see `retryAfterMs`. */
  retryAfterMs?: number | undefined
  schedule?: readonly number[]
  /** In [0, 1). */
  random: number
}

/** Milliseconds until the next attempt; undefined when there is none left. Never before what the receiver asked for. */
export const retryDelay = ({ attempts, retryAfterMs = 0, schedule = defaultSchedule, random }: RetryQuestion) => {
  const planned = schedule[attempts - 1]
  if (planned === undefined) return undefined
  return Math.round(Math.max(planned * (1 - jitter + 2 * jitter * random), retryAfterMs))
}

const imfFixdate = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/

/**
 * `Retry-After` (RFC 9110 §10.2.3: whole seconds or an HTTP date) in ms, 24 h at most. Invalid values are ignored; a
 * past date is 0.
 */
export const retryAfterMs = (header: string | undefined, now: Date): number | undefined => {
  if (header === undefined) return undefined
  const text = header.trim()
  if (/^\d{1,15}$/.test(text)) return Math.min(Number(text) * 1_000, maxRetryAfterMs)
  if (!imfFixdate.test(text)) return undefined
  const time = Date.parse(text)
  return Number.isNaN(time) ? undefined : Math.min(Math.max(time - now.getTime(), 0), maxRetryAfterMs)
}
