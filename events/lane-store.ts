import { type Query, statement } from '../platform/database.ts'

/**
 * Lanes: the deliveries of one hook about one entity, in order. A relay claims lanes (`lane-claim-store.ts`), reads their first open
 * deliveries, and records what came of each attempt (`attempt-store.ts`); fences keep a relay that lost its lease from writing.
 */
export interface LaneKey {
  hookId: string
  entityKind: string
  entityId: string
}

/** A lane that is ours until the lease ends. What is written under an older `fence` than the lane's has no effect. */
export interface Lease extends LaneKey {
  fence: number
}

// A statement of its own: what the claim's snapshot saw may be older than the lock it got. The first of every lane come before any second.
// One that waits for its retry holds up what comes after it, also when a replay has put something before it.
const heads = statement(
  'lanes-heads',
  `SELECT fence, id, "eventId", type, version, attempts, test, "occurredAt", payload, gap FROM (
     SELECT *, sum(octet_length(payload)) OVER (ORDER BY place, fence) - octet_length(payload) AS before FROM (
       SELECT lane.fence, open.place, open.id, open.event_id AS "eventId", open.type, open.version, open.attempts, open.test,
              coalesce(outbox.created_at, open.created_at) AS "occurredAt", coalesce(open.payload, outbox.payload) AS payload,
              open.version > 1 AND coalesce((
                SELECT earlier.state IN ('dead', 'cancelled') FROM deliveries AS earlier
                WHERE earlier.hook_id = lane.hook_id AND earlier.entity_kind = lane.entity_kind
                  AND earlier.entity_id = lane.entity_id AND earlier.version < open.version
                ORDER BY earlier.version DESC LIMIT 1
              ), false) AS gap
       FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS lane (hook_id, entity_kind, entity_id, fence)
       CROSS JOIN LATERAL (
         SELECT *, row_number() OVER (ORDER BY version) AS place, bool_and(next_attempt_at <= now()) OVER (ORDER BY version) AS due
         FROM deliveries
         WHERE deliveries.hook_id = lane.hook_id AND deliveries.entity_kind = lane.entity_kind
           AND deliveries.entity_id = lane.entity_id AND state IN ('pending', 'retrying')
         ORDER BY version LIMIT $5
       ) AS open
       LEFT JOIN outbox ON outbox.id = open.event_id
       WHERE due
     ) AS found
   ) AS measured
   WHERE before IS NULL OR before <= $6
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
  /** Null when the event is no longer kept. */
  payload: Buffer | null
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
 * The first open deliveries of claimed lanes, in order, by fence: at most `perLane` each, and together not much more than `maxBytes` of
 * payload (one at least). A lane may have none that is due.
 */
export const openDeliveries = async (
  query: Query,
  leases: readonly Lease[],
  { perLane, maxBytes }: { perLane: number; maxBytes: number },
): Promise<Map<number, OpenDelivery[]>> => {
  if (leases.length === 0) return new Map()
  const rows = await query<OpenDelivery & { fence: number }>(heads, [...laneColumns(leases), perLane, maxBytes])
  return Map.groupBy(rows, ({ fence }) => fence)
}
