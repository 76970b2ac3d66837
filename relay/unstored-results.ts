import type { AttemptRecord } from './ledger/attempt-store.ts'

/** Undefined when there was no attempt, or none that counts. */
export type Attempt = Promise<AttemptRecord | undefined>

/**
 * What came, or comes, of attempts whose transaction was lost. When their events come again nothing is sent a second time, and nothing again and
 * again while the database takes nothing in.
 */
export interface UnstoredResults {
  keep(hookId: string, eventId: string, result: Attempt): void
  /** It is no longer kept then. */
  take(hookId: string, eventId: string): Attempt | undefined
  forgetOld(): void
}

/** Kept for so long, in ms, and so many of them. */
const keptMs = 60_000
const keptResults = 1_024

const keyOf = (hookId: string, eventId: string) => `${hookId} ${eventId}`

export const createUnstoredResults = (): UnstoredResults => {
  const unstored = new Map<string, { at: number; result: Attempt }>()
  /** The oldest come first. */
  const forget = (most: number) => {
    const now = performance.now()
    for (const [key, { at }] of unstored) {
      if (now - at <= keptMs && unstored.size <= most) return
      unstored.delete(key)
    }
  }
  return {
    keep(hookId, eventId, result) {
      forget(keptResults - 1)
      unstored.set(keyOf(hookId, eventId), { at: performance.now(), result: result.catch(() => undefined) })
    },
    take(hookId, eventId) {
      const key = keyOf(hookId, eventId)
      const result = unstored.get(key)?.result
      unstored.delete(key)
      return result
    },
    forgetOld: () => forget(keptResults),
  }
}
