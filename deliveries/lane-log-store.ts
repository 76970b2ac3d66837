import { oneRow, type Query, statement } from '../platform/database/database.ts'
import type { Slice } from './delivery-log-store.ts'

/** What the Management API shows of how a hook is doing: its lanes, and its health as relays note it. */

/** Deliveries behind the first one are counted up to here. */
export const mostBehind = 1_000

// The lane that has waited longest comes first: by the index of due lanes, so that a page reads its own only.
const lanes = statement(
  'lane-list',
  `SELECT json_build_object('kind', lane.entity_kind, 'id', lane.entity_id) AS entity,
     coalesce(lane.leased_until > now(), false) AND head.next_attempt_at <= now() AS "isSending",
     head.id::text, head.type AS event, head.version, head.attempts, head.last_status AS "lastStatus",
     head.last_error AS "lastError", head.created_at AS "createdAt", head.next_attempt_at AS "nextAttemptAt",
     (SELECT count(*) FROM (
        SELECT FROM deliveries
        WHERE hook_id = lane.hook_id AND entity_kind = lane.entity_kind AND entity_id = lane.entity_id
          AND version > head.version AND finished_at IS NULL
        LIMIT ${mostBehind}) AS counted) AS behind
   FROM (
     SELECT * FROM lanes WHERE hook_id = $1 AND NOT test ORDER BY ready_at, entity_kind, entity_id LIMIT $2 OFFSET $3
   ) AS lane
   CROSS JOIN LATERAL (
     SELECT * FROM deliveries
     WHERE hook_id = lane.hook_id AND entity_kind = lane.entity_kind AND entity_id = lane.entity_id
       AND version >= lane.from_version AND finished_at IS NULL
     ORDER BY version LIMIT 1
   ) AS head
   ORDER BY lane.ready_at, lane.entity_kind, lane.entity_id`,
)
const laneCount = statement('lane-count', `SELECT count(*) AS total FROM lanes WHERE hook_id = $1 AND NOT test`)

/** A lane with its first open delivery, which holds up the others. */
export interface LaneRow {
  entity: { kind: string; id: string }
  isSending: boolean
  id: string
  event: string
  version: number
  attempts: number
  lastStatus: number | null
  lastError: string | null
  createdAt: Date
  nextAttemptAt: Date
  behind: number
}

/** A lane that has just run empty is counted and not listed. */
export const listLanes = async (query: Query, hookId: string, { limit, offset }: Slice) => {
  const [rows, { total }] = await Promise.all([
    query<LaneRow>(lanes, [hookId, limit, offset]),
    oneRow(query<{ total: number }>(laneCount, [hookId])),
  ])
  return { rows, total }
}

/** How many of the newest attempts say since when it has gone as it goes. */
const newestAttempts = 1_000

const health = statement(
  'hook-health',
  `SELECT enabled, disabled_at AS "disabledAt", disabled_reason AS "disabledReason", failures,
     failing_since AS "failingSince", open_since AS "openSince", CASE WHEN open_since IS NOT NULL THEN probe_at END AS "probeAt",
     CASE WHEN paused_until > now() THEN paused_until END AS "pausedUntil", catching_up AS "isCatchingUp",
     newest.*
   FROM hooks CROSS JOIN LATERAL (
     SELECT max(at) FILTER (WHERE succeeded) AS "lastSuccessAt", max(at) FILTER (WHERE NOT succeeded) AS "lastFailureAt",
       min(at) FILTER (WHERE succeeded AND (at > last_failure) IS NOT FALSE) AS "succeedingSince"
     FROM (
       SELECT at, succeeded, max(at) FILTER (WHERE NOT succeeded) OVER () AS last_failure
       FROM (SELECT at, succeeded FROM delivery_attempts WHERE hook_id = $1 ORDER BY at DESC LIMIT ${newestAttempts}) AS latest
     ) AS attempt
   ) AS newest
   WHERE hooks.id = $1`,
)

export interface HealthRow {
  enabled: boolean
  disabledAt: Date | null
  disabledReason: string | null
  /** Since the last success. */
  failures: number
  failingSince: Date | null
  /** The circuit breaker. */
  openSince: Date | null
  probeAt: Date | null
  /** The receiver asked for silence. */
  pausedUntil: Date | null
  isCatchingUp: boolean
  /** Of the newest 1 000 attempts that are kept. */
  lastSuccessAt: Date | null
  lastFailureAt: Date | null
  succeedingSince: Date | null
}

export const findHealth = async (query: Query, hookId: string): Promise<HealthRow | undefined> =>
  (await query<HealthRow>(health, [hookId]))[0]
