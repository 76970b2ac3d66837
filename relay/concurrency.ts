import { createSemaphore, type WithPermit } from '../platform/semaphore.ts'

/**
 * How much one relay may have under way for each hook, so that a slow or broken receiver holds up only itself: few
 * POSTs at a time, and only as many lanes claimed ahead as the receiver has lately got through.
 */
export interface Concurrency {
  of(hookId: string): HookConcurrency
  /** How many more lanes may be claimed, for hooks where that is not `perHook`. */
  room(): Map<string, number>
  /**
   * A claim with that `room` brought so many lanes of these hooks. `isCut`: it may have left others for which there was
   * room.
   */
  claimed(lanesByHook: ReadonlyMap<string, number>, room: ReadonlyMap<string, number>, isCut: boolean): void
}

export interface HookConcurrency {
  /** Runs one POST, once fewer than `perHook` others are under way. */
  post: WithPermit
  /**
   * Grows when the receiver asks for silence or is gone, or is avoided; lanes claimed before are then given back
   * unsent.
   */
  readonly epoch: number
  /** Its last attempt failed. */
  readonly failing: boolean
  /** A lane is begun. */
  begin(): void
  /**
   * A lane has ended. True when a claim is worthwhile again, since an earlier one may have left lanes for want of room.
   */
  end(): boolean
  /**
   * Learns from an attempt. `stop`: the receiver wants no more now. True if the hook's health changes: a failure, or
   * the first success after one.
   */
  learn(attempt: { succeeded: boolean; durationMs: number; stop: boolean }): boolean
  /** Claims no lanes for `ms`: this relay cannot serve the hook, another may. */
  avoid(ms: number): void
}

/**
 * Lanes of one hook claimed ahead, at most. With fewer, claiming would limit the rate of a receiver that answers within
 * a millisecond. With more, claimed lanes live so long that the garbage collector moves them to the old generation
 * (measured: 80 MB more).
 */
const maxWindow = 64
/** An answer that takes longer, in ms, takes the window back to its start. */
const slowMs = 1_000
/** Hooks that are remembered without anything under way. */
const keptHooks = 1_000

export const createConcurrency = ({ perHook, maxLanes }: { perHook: number; maxLanes: number }): Concurrency => {
  const hooks = new Map<string, ReturnType<typeof createHook>>()
  // Slow receivers hold their lanes for long. All of them together may hold half of the lanes, so that the others are
  // not held up.
  const maxSlowLanes = Math.max(perHook, Math.floor(maxLanes / 2))
  let slowLanes = 0

  const createHook = () => {
    let lanes = 0
    let window = perHook
    let isSlow = false
    let failing = false
    let epoch = 0
    let avoidedUntil = 0
    /** A claim had no room for lanes of this hook that may be due. */
    let mayHaveLeft = false
    const roomNow = () => {
      if (avoidedUntil > 0 && performance.now() < avoidedUntil) return 0
      if (isSlow && slowLanes >= maxSlowLanes) return 0
      // Half of it at a time: a claim costs the same for one lane as for thirty.
      return (window - lanes) * 2 >= window ? window - lanes : 0
    }
    const count = (change: number) => {
      lanes += change
      if (isSlow) slowLanes += change
    }
    return {
      post: createSemaphore({ permits: perHook }),
      get epoch() {
        return epoch
      },
      get failing() {
        return failing
      },
      get isIdle() {
        return lanes === 0
      },
      room() {
        const room = roomNow()
        if (room === 0) mayHaveLeft = true
        return room
      },
      leave() {
        mayHaveLeft = true
      },
      begin: () => count(1),
      end() {
        count(-1)
        if (!mayHaveLeft || roomNow() === 0) return false
        mayHaveLeft = false
        return true
      },
      learn({ succeeded, durationMs, stop }: { succeeded: boolean; durationMs: number; stop: boolean }) {
        if (stop) epoch += 1
        const isChange = failing || !succeeded
        failing = !succeeded
        const wasSlow = isSlow
        isSlow = !succeeded || durationMs >= slowMs
        if (isSlow !== wasSlow) slowLanes += isSlow ? lanes : -lanes
        window = isSlow ? perHook : Math.min(window + 4, maxWindow)
        return isChange
      },
      avoid(ms: number) {
        epoch += 1
        avoidedUntil = performance.now() + ms
      },
    }
  }

  const of = (hookId: string) => {
    const known = hooks.get(hookId)
    if (known) return known
    if (hooks.size >= keptHooks) for (const [id, { isIdle }] of hooks) if (isIdle) hooks.delete(id)
    const hook = createHook()
    hooks.set(hookId, hook)
    return hook
  }

  return {
    of,
    claimed(lanesByHook, room, isCut) {
      for (const [hookId, lanes] of lanesByHook) if (isCut || lanes >= (room.get(hookId) ?? perHook)) of(hookId).leave()
    },
    room: () => {
      const rooms = new Map<string, number>()
      for (const [hookId, hook] of hooks) {
        const room = hook.room()
        if (room !== perHook) rooms.set(hookId, room)
      }
      return rooms
    },
  }
}
