import type { Pool } from 'undici'
import type { HealthSettings } from '../../config/settings/targets.ts'
import { probe } from './probe.ts'
import type { HealthState } from './record.ts'

/** Checks of one target, one at a time. */
export interface HealthChecks {
  readonly state: HealthState
  /** Why the last check was bad. */
  readonly reason: string | undefined
  close(): void
}

const jitter = 0.1
/** The first check of a target that nothing is known of comes within this time, in ms: all begin at once. */
const firstWithin = 500

/**
 * A target that nothing is known of is used; the first good check makes it healthy. `known` is what earlier checks
 * found, with other settings.
 */
export const startHealthChecks = (options: {
  settings: HealthSettings
  known: HealthState
  /** For one check. */
  openPool: () => Pool
  onChange: (state: HealthState, reason: string | undefined) => void
  onCheck: (good: boolean) => void
}): HealthChecks => {
  const { settings, openPool, onChange, onCheck } = options
  const { interval, healthyAfter, unhealthyAfter } = settings
  let state = options.known
  let reason: string | undefined
  let row = { good: true, length: 0 }
  let current: AbortController | undefined
  let closed = false

  const check = async () => {
    current = new AbortController()
    reason = await probe(openPool(), settings, current)
    if (closed) return
    const good = reason === undefined
    onCheck(good)
    row = { good, length: row.good === good ? row.length + 1 : 1 }
    const next = good ? 'healthy' : 'unhealthy'
    const wanted = good ? (state === 'unknown' ? 1 : healthyAfter) : unhealthyAfter
    if (next !== state && row.length >= wanted) {
      state = next
      onChange(state, reason)
    }
    schedule(interval * (1 + jitter * (2 * Math.random() - 1)))
  }
  let timer: NodeJS.Timeout
  const schedule = (delay: number) => {
    timer = setTimeout(check, delay).unref()
  }
  schedule(Math.random() * Math.min(interval, firstWithin))

  return {
    get state() {
      return state
    },
    get reason() {
      return reason
    },
    close() {
      closed = true
      current?.abort()
      clearTimeout(timer)
    },
  }
}
