/**
 * What one relay has under way for each hook, so that a slow or broken receiver holds up only itself: few POSTs at a time, and only
 * as many lanes claimed ahead as it has lately got through.
 */
export interface HookLoads {
  of(hookId: string): HookLoad
  /** How many more lanes may be claimed, for hooks where that is not the default. */
  room(): Map<string, number>
}

export interface HookLoad {
  /** Grows when the receiver asks for silence or is gone; lanes claimed before are then given back unsent. */
  readonly epoch: number
  begin(): void
  /** True when there is room again for a worthwhile claim. */
  end(): boolean
  /** Runs `work` once fewer than `perHook` others run. */
  inTurn<Result>(work: () => Promise<Result>): Promise<Result>
  /** Learns from an attempt. */
  learn(attempt: { succeeded: boolean; durationMs: number; stop: boolean }): void
}

/** Lanes of one hook claimed ahead, at most. With fewer, claiming would limit the speed of a receiver that answers within a millisecond. */
const maxWindow = 128
/** An answer slower than this, in ms, takes the window back to its start. */
const briskMs = 1_000
const keptLoads = 10_000

export const createHookLoads = ({ perHook }: { perHook: number }): HookLoads => {
  const loads = new Map<string, ReturnType<typeof createLoad>>()

  const createLoad = () => {
    let lanes = 0
    let window = perHook
    let posts = 0
    let epoch = 0
    const waiting: (() => void)[] = []
    // A quarter at a time: a claim costs the same for one lane as for thirty.
    const room = () => ((window - lanes) * 4 >= window ? window - lanes : 0)
    return {
      get epoch() {
        return epoch
      },
      get idle() {
        return lanes === 0
      },
      room,
      begin() {
        lanes += 1
      },
      end() {
        lanes -= 1
        return room() > 0
      },
      async inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
        if (posts >= perHook) await new Promise<void>((resolve) => waiting.push(resolve))
        else posts += 1
        try {
          return await work()
        } finally {
          // The turn passes on; only when nobody waits is there one fewer.
          const next = waiting.shift()
          if (next) next()
          else posts -= 1
        }
      },
      learn({ succeeded, durationMs, stop }: { succeeded: boolean; durationMs: number; stop: boolean }) {
        if (stop) epoch += 1
        window = succeeded && durationMs < briskMs ? Math.min(window + 2, maxWindow) : perHook
      },
    }
  }

  return {
    of(hookId) {
      const known = loads.get(hookId)
      if (known) return known
      if (loads.size >= keptLoads) for (const [id, { idle }] of loads) if (idle) loads.delete(id)
      const load = createLoad()
      loads.set(hookId, load)
      return load
    },
    room: () => new Map([...loads].map(([hookId, load]) => [hookId, load.room()])),
  }
}
