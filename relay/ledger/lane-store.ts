import { type Query, statement } from '../../platform/database/database.ts'

/**
 * Lanes: the deliveries of one hook about one entity, in order. A relay claims lanes (`lane-claim-store.ts`), reads
 * their first open deliveries, and records what came of each attempt (`attempt-store.ts`); fences keep a relay that
 * lost its lease from writing.
 */
export interface LaneKey {
  hookId: string
  entityKind: string
  entityId: string
}

/** A lane that is ours until the lease ends. What is written under an older `fence` than the lane's has no effect. */
export interface Lease extends LaneKey {
  fence: number
  /** None of its open deliveries has a lower version. */
  from: number
}

// Not part of the claim, whose snapshot may be older than its locks. While memory is short every lane gets its first
// delivery before any gets a second. A delivery that waits for its retry holds up those behind it, also when a replay
// has put another one before it.
const heads = statement(
  'lanes-heads',
  `SELECT fence, id, "eventId", type, version, attempts, test, "occurredAt", payload, gap FROM (
     SELECT *, sum(octet_length(payload)) OVER (ORDER BY place, fence) - octet_length(payload) AS before FROM (
       SELECT lane.fence, open.place, open.id, open.event_id AS "eventId", open.type, open.version, open.attempts, open.test,
              coalesce(outbox.created_at, open.created_at) AS "occurredAt", convert_from(coalesce(open.payload, outbox.payload), 'UTF8') AS payload,
              open.version > 1 AND NOT open.follows AND coalesce((
                SELECT earlier.state IN ('dead', 'cancelled') FROM deliveries AS earlier
                WHERE earlier.hook_id = lane.hook_id AND earlier.entity_kind = lane.entity_kind
                  AND earlier.entity_id = lane.entity_id AND earlier.version < open.version
                ORDER BY earlier.version DESC LIMIT 1
              ), false) AS gap
       FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[]) AS lane (hook_id, entity_kind, entity_id, fence, first)
       CROSS JOIN LATERAL (
         SELECT *, row_number() OVER versions AS place, bool_and(next_attempt_at <= now()) OVER versions AS due,
           coalesce(lag(version) OVER versions = version - 1, false) AS follows
         FROM deliveries
         WHERE deliveries.hook_id = lane.hook_id AND deliveries.entity_kind = lane.entity_kind
           AND deliveries.entity_id = lane.entity_id AND version >= lane.first AND finished_at IS NULL
         WINDOW versions AS (ORDER BY version) ORDER BY version LIMIT $6
       ) AS open
       LEFT JOIN outbox ON outbox.id = open.event_id
       WHERE due
     ) AS found
   ) AS measured
   WHERE before IS NULL OR before <= $7
   ORDER BY fence, version`,
)

export interface OpenDelivery {
  id: number
  eventId: string
  type: string
  version: number
  /** POSTs so far. */
  attempts: number
  /** Tried once only. */
  test: boolean
  /** When the event was recorded. */
  occurredAt: Date
  /** JSON. Null when the event is no longer kept. */
  payload: string | null
  /** The delivery before it in the lane was given up. */
  gap: boolean
}

/** Lanes as the arrays that `unnest` takes. */
export const laneColumns = (lanes: readonly Lease[]) => [
  lanes.map(({ hookId }) => hookId),
  lanes.map(({ entityKind }) => entityKind),
  lanes.map(({ entityId }) => entityId),
  lanes.map(({ fence }) => fence),
]

/**
 * The first open deliveries of claimed lanes, in order, by fence: at most `perLane` each, and together not much more
 * than `maxBytes` of payload (one at least). A lane may have none that is due.
 */
export const openDeliveries = async (
  query: Query,
  leases: readonly Lease[],
  { perLane, maxBytes }: { perLane: number; maxBytes: number },
): Promise<Map<number, OpenDelivery[]>> => {
  if (leases.length === 0) return new Map()
  const rows = await query<OpenDelivery & { fence: number }>(heads, [
    ...laneColumns(leases),
    leases.map(({ from }) => from),
    perLane,
    maxBytes,
  ])
  return Map.groupBy(rows, ({ fence }) => fence)
}
