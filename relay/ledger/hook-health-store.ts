import { type Query, statement } from '../../platform/database/database.ts'
import { type HookHealth, healthAfter, isGivenUp, type Outcome, probeDelay } from './hook-health.ts'

/** The health of hooks, kept in their rows, so that all relays and the API see the same. */

const lock = statement(
  'hook-health-lock',
  `SELECT id, enabled, failures, failing_lane AS lane, failing_widely AS widely, open_since IS NOT NULL AS open, probes,
     coalesce(extract(epoch FROM now() - failing_since) * 1000, 0)::float8 AS "failingForMs"
   FROM hooks WHERE id = ANY($1::text[]) ORDER BY id FOR NO KEY UPDATE`,
)

export interface LockedHealth extends HookHealth {
  id: string
  enabled: boolean
}

/**
 * Locks the hooks until the transaction ends. Take this lock before those of lanes, as the deletion of a hook does.
 */
export const lockHealth = (query: Query, hookIds: readonly string[]): Promise<LockedHealth[]> =>
  query<LockedHealth>(lock, [hookIds])

// failing_since is NULL if and only if there are no failures; whoever changes or enables a hook clears both (migration
// 0016).
const store = statement(
  'hook-health-store',
  `UPDATE hooks SET
     failing_since = CASE WHEN new.failures = 0 THEN NULL WHEN new.anew THEN now() ELSE coalesce(failing_since, now()) END,
     failures = new.failures, failing_lane = new.lane, failing_widely = new.widely,
     open_since = CASE WHEN new.open THEN coalesce(open_since, now()) END, probes = new.probes,
     probe_at = CASE WHEN new.open THEN now() + new."probeInMs" * interval '1 millisecond' END,
     paused_until = greatest(paused_until, now() + new."pauseMs" * interval '1 millisecond')
   FROM jsonb_to_recordset($1::jsonb) AS new (
     id text, failures int, anew boolean, lane text, widely boolean, open boolean, probes int, "probeInMs" float8, "pauseMs" float8)
   WHERE hooks.id = new.id`,
)
const disable = statement(
  'hook-health-disable',
  `UPDATE hooks SET enabled = false, disabled_at = now(), disabled_reason = $2 WHERE id = $1 AND enabled`,
)

/** What came of the POSTs of one relay to one hook. */
export interface HookOutcomes {
  hookId: string
  /** In the order in which they came. */
  outcomes: readonly Outcome[]
  /** The receiver asked for silence. */
  pauseMs?: number | undefined
  /** The receiver is gone: why the hook is to be disabled. */
  disable?: string | undefined
}

/** What operators hear of. */
export interface HookChange {
  hookId: string
  change: 'breaker opened' | 'breaker closed' | 'disabled'
  reason?: string
}

export interface ProbeTiming {
  probeSchedule?: readonly number[] | undefined
  /** In [0, 1). */
  random: () => number
}

/** Stores what the outcomes say of hooks that the transaction has locked; hooks that are gone are passed over. */
export const storeHealth = async (
  query: Query,
  locked: readonly LockedHealth[],
  outcomesByHook: readonly HookOutcomes[],
  { probeSchedule, random }: ProbeTiming,
): Promise<HookChange[]> => {
  const rows: object[] = []
  const changes: HookChange[] = []
  for (const { hookId, outcomes, pauseMs, disable: reason } of outcomesByHook) {
    const before = locked.find(({ id }) => id === hookId)
    if (before === undefined) continue
    const { id, enabled, ...health } = before
    const after = healthAfter(health, outcomes)
    const anew = before.failures === 0 || outcomes.some(({ succeeded }) => succeeded)
    const probeInMs = after.open
      ? probeDelay({ probes: after.probes, schedule: probeSchedule, random: random() })
      : null
    rows.push({ id, ...after, anew, probeInMs, pauseMs })
    if (after.open !== before.open) changes.push({ hookId, change: after.open ? 'breaker opened' : 'breaker closed' })
    const because = reason ?? (isGivenUp(after) && !anew ? 'Nothing could be delivered for five days.' : undefined)
    if (because !== undefined && enabled) changes.push({ hookId, change: 'disabled', reason: because })
  }
  if (rows.length > 0) await query(store, [JSON.stringify(rows)])
  for (const { hookId, change, reason } of changes) if (change === 'disabled') await query(disable, [hookId, reason])
  return changes
}
