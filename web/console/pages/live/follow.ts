/** A stream that is followed over its breaks. */
export interface FollowOptions<Event> {
  /**
   * The events of one connection. `since` is RFC 3339: what was kept from then on comes first; undefined: no event with
   * a time has come yet. Throws when it cannot be opened or breaks.
   */
  open(since: string | undefined, signal: AbortSignal): AsyncIterable<Event>
  /** When an event is of; undefined for those that tell of the stream itself. */
  timeOf(event: Event): string | undefined
  onEvent(event: Event): void
  onState(state: FollowState): void
  /** Whether a failure is final: whoever asks may not. */
  isFinal(error: unknown): boolean
  signal: AbortSignal
  wait?: (ms: number, signal: AbortSignal) => Promise<void>
}

export type FollowState = { kind: 'opening' } | { kind: 'live' } | { kind: 'broken' } | { kind: 'over'; error: unknown }

/** How far the clocks of gateways may be apart: so much is asked for again after a break. In ms. */
const overlapMs = 5_000
const firstWaitMs = 250
const longestWaitMs = 5_000

/**
 * Follows until it is told to stop, or may not. After a break it goes on where it was: what comes twice is for the
 * reader to leave out.
 */
export const follow = async <Event>(options: FollowOptions<Event>): Promise<void> => {
  const { open, timeOf, onEvent, onState, isFinal, signal, wait = pause } = options
  let since: string | undefined
  let waitMs = firstWaitMs
  let isLive = false
  onState({ kind: 'opening' })
  while (!signal.aborted) {
    try {
      for await (const event of open(since, signal)) {
        if (signal.aborted) return
        waitMs = firstWaitMs
        // The first event says how a gateway is.
        if (!isLive) onState({ kind: 'live' })
        isLive = true
        const time = timeOf(event)
        if (time !== undefined) since = later(since, time)
        onEvent(event)
      }
    } catch (error) {
      if (signal.aborted) return
      if (isFinal(error)) return onState({ kind: 'over', error })
    }
    if (signal.aborted) return
    isLive = false
    onState({ kind: 'broken' })
    await wait(waitMs, signal)
    waitMs = Math.min(longestWaitMs, waitMs * 2)
  }
}

/** What is asked for is never earlier than before. */
const later = (since: string | undefined, time: string): string => {
  const from = new Date(Date.parse(time) - overlapMs).toISOString()
  return since === undefined || from > since ? from : since
}

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done)
  })
