/**
 * What one relay has under way for each hook, so that a slow or broken receiver holds up only itself: few POSTs at a time, and only
 * as many lanes claimed ahead as it has lately got through.
 */
export interface HookLoads {
  of(hookId: string): HookLoad
  /** How many more lanes may be claimed, for hooks where that is not the default. */
  room(): Map<string, number>
  /** Hooks whose receivers are prompt. */
  prompt(): string[]
  /** What a claim brought for these hooks; `cut`: it may have left lanes of theirs for which there was room. */
  claimed(lanesByHook: ReadonlyMap<string, number>, room: ReadonlyMap<string, number>, cut: boolean): void
}

export interface HookLoad {
  /** Grows when the receiver asks for silence or is gone, or is avoided; lanes claimed before are then given back unsent. */
  readonly epoch: number
  /** Its last attempt failed. */
  readonly failing: boolean
  /** Its receiver usually answers within `promptMs`, and nothing hangs. */
  isPrompt(): boolean
  /** How many attempts it gets through in so many milliseconds: one after the other, and all together, behind those that wait. */
  capacity(ms: number): { ofOne: number; more: number }
  begin(): void
  /** True when there is room again for a worthwhile claim, and may be lanes for it: the last claim had to leave some, or did not look. */
  end(): boolean
  /** Runs `work`, which makes one attempt at a time, once fewer than `perHook` others run. */
  inTurn<Result>(work: () => Promise<Result>): Promise<Result>
  /** So many attempts more are about to be made, or fewer. */
  expect(more: number): void
  /** An attempt begins, whose turn has come; while it hangs the receiver is not prompt. Returns what ends it. */
  watch(): () => void
  /** Learns from an attempt. True when it says something new: a failure, or the first success after one. */
  learn(attempt: { succeeded: boolean; durationMs: number; stop: boolean }): boolean
  /** Claims no lanes for `ms`: this relay cannot serve the hook, another may. */
  avoid(ms: number): void
}

/**
 * Lanes of one hook claimed ahead, at most. With fewer, claiming would limit the speed of a receiver that answers within a millisecond; with
 * more, what is claimed lives so long that the garbage collector takes it for lasting (measured: 80 MB more).
 */
const maxWindow = 64
/** A receiver is prompt that answers within this, in ms. */
const promptMs = 10
/** An attempt that takes longer hangs, in ms. */
export const hangMs = 50
/** An answer slower than this, in ms, takes the window back to its start. */
const briskMs = 1_000
const keptLoads = 1_000

export const createHookLoads = ({ perHook, maxLanes }: { perHook: number; maxLanes: number }): HookLoads => {
  const loads = new Map<string, ReturnType<typeof createLoad>>()
  // Receivers that hang hold their lanes for long; together they may hold half of them, or they would hold up the others.
  const maxSluggish = Math.max(perHook, Math.floor(maxLanes / 2))
  let sluggishLanes = 0

  const createLoad = () => {
    let lanes = 0
    let window = perHook
    let sluggish = false
    let failed = false
    let turns = 0
    let expected = 0
    let epoch = 0
    let avoidedUntil = 0
    /** Lanes may be due that no claim has taken for want of room. */
    let isBehind = false
    const waiting: (() => void)[] = []
    /** What an answer takes when nothing else is in its way: follows what is faster at once, what is slower bit by bit. */
    let usualMs: number | undefined
    /** When the attempts began that are under way, the oldest first. */
    const begun = new Set<{ at: number }>()
    const room = () => {
      if (avoidedUntil > 0 && performance.now() < avoidedUntil) return 0
      if (sluggish && sluggishLanes >= maxSluggish) return 0
      // Half of it at a time: a claim costs the same for one lane as for thirty.
      return (window - lanes) * 2 >= window ? window - lanes : 0
    }
    const count = (change: number) => {
      lanes += change
      if (sluggish) sluggishLanes += change
    }
    return {
      get epoch() {
        return epoch
      },
      get failing() {
        return failed
      },
      get idle() {
        return lanes === 0 && turns === 0 && expected === 0
      },
      isPrompt() {
        const now = performance.now()
        const [oldest] = begun
        const isPrompt = usualMs !== undefined && usualMs <= promptMs && !failed && now >= avoidedUntil
        return isPrompt && (oldest === undefined || now - oldest.at <= hangMs)
      },
      capacity(ms: number) {
        const ofOne = Math.ceil(ms / Math.max(usualMs ?? ms, 1))
        return { ofOne, more: Math.max(ofOne * perHook - turns - waiting.length - expected, 0) }
      },
      room() {
        const lanesMore = room()
        if (lanesMore === 0) isBehind = true
        return lanesMore
      },
      fallBehind() {
        isBehind = true
      },
      begin: () => count(1),
      end() {
        count(-1)
        if (!isBehind || room() === 0) return false
        isBehind = false
        return true
      },
      async inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
        if (turns >= perHook) await new Promise<void>((resolve) => waiting.push(resolve))
        else turns += 1
        try {
          return await work()
        } finally {
          // The turn passes on; only when nobody waits is there one fewer.
          const next = waiting.shift()
          if (next) next()
          else turns -= 1
        }
      },
      expect(more: number) {
        expected += more
      },
      watch() {
        const own = { at: performance.now() }
        begun.add(own)
        return () => void begun.delete(own)
      },
      learn({ succeeded, durationMs, stop }: { succeeded: boolean; durationMs: number; stop: boolean }) {
        if (stop) epoch += 1
        const isNew = failed || !succeeded
        failed = !succeeded
        usualMs = Math.min(durationMs, usualMs === undefined ? durationMs : usualMs + (durationMs - usualMs) / 16)
        const isSluggish = !succeeded || durationMs >= briskMs
        if (isSluggish !== sluggish) sluggishLanes += isSluggish ? lanes : -lanes
        sluggish = isSluggish
        window = sluggish ? perHook : Math.min(window + 4, maxWindow)
        return isNew
      },
      avoid(ms: number) {
        epoch += 1
        avoidedUntil = performance.now() + ms
      },
    }
  }

  const of = (hookId: string) => {
    const known = loads.get(hookId)
    if (known) return known
    if (loads.size >= keptLoads) for (const [id, { idle }] of loads) if (idle) loads.delete(id)
    const load = createLoad()
    loads.set(hookId, load)
    return load
  }

  return {
    of,
    prompt: () => [...loads].filter(([, load]) => load.isPrompt()).map(([hookId]) => hookId),
    claimed(lanesByHook, room, cut) {
      for (const [hookId, lanes] of lanesByHook)
        if (cut || lanes >= (room.get(hookId) ?? perHook)) of(hookId).fallBehind()
    },
    room: () => {
      const rooms = new Map<string, number>()
      for (const [hookId, load] of loads) {
        const room = load.room()
        if (room !== perHook) rooms.set(hookId, room)
      }
      return rooms
    },
  }
}
