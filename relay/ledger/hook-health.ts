/**
 * The health of a hook, over all its lanes and all relays: its circuit breaker, and when it is disabled. Pure; the
 * state is kept in the row of the hook (`hook-health-store.ts`).
 */
export interface HookHealth {
  /** Since the last success. */
  failures: number
  /** Since the first of them, in ms. */
  failingForMs: number
  /** The lane of the first of them, and whether others failed too. */
  lane: string | null
  widely: boolean
  /** The breaker: while it is open only probes are sent. */
  open: boolean
  /** Failed probes. */
  probes: number
}

export interface Outcome {
  succeeded: boolean
  lane: string
}

/** A lane may fail for a reason of its own, so failures in several lanes say more about the receiver. */
const openAfter = { severalLanes: 5, oneLane: 10 }
const disableAfterMs = 5 * 86_400_000

/** The state after these outcomes, in the order in which they came. */
export const healthAfter = (before: HookHealth, outcomes: readonly Outcome[]): HookHealth => {
  const health = { ...before }
  for (const { succeeded, lane } of outcomes) {
    if (succeeded) {
      Object.assign(health, { failures: 0, failingForMs: 0, lane: null, widely: false, open: false, probes: 0 })
      continue
    }
    health.failures += 1
    health.lane ??= lane
    health.widely ||= health.lane !== lane
    if (health.open) health.probes += 1
    else health.open = health.failures >= (health.widely ? openAfter.severalLanes : openAfter.oneLane)
  }
  return health
}

/** Nothing has succeeded for five days: the hook is disabled, and what it misses is held. */
export const isGivenUp = ({ failures, failingForMs }: HookHealth): boolean =>
  failures > 0 && failingForMs >= disableAfterMs

/** Delays before probes 1, 2, … in ms; the last one again and again. */
export const defaultProbeSchedule: readonly number[] = [30_000, 60_000, 120_000, 300_000, 600_000, 900_000]

/** Milliseconds until the next probe of an open breaker, ±20 %. `random` in [0, 1). */
export const probeDelay = ({
  probes,
  schedule = defaultProbeSchedule,
  random,
}: {
  probes: number
  schedule?: readonly number[]
  random: number
}): number => Math.round((schedule[probes] ?? schedule.at(-1)!) * (0.8 + 0.4 * random))
