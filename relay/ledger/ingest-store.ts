import { patternsOf } from '../../events/event-patterns.ts'
import { type Query, statement } from '../../platform/database/database.ts'
import type { PendingEvent } from './pending-store.ts'

// No lane may outlive its hook, so hooks are locked. The upsert locks lanes that exist, also where it changes nothing.
// So this statement and a release of the same lane wait for each other, and no delivery is left without a lane. The
// order of rows is the order of locks, the same everywhere.
const ingest = statement(
  'ingest',
  `WITH removed AS (DELETE FROM outbox_pending WHERE seq = ANY($1::bigint[]) RETURNING seq),
   named AS MATERIALIZED (
     SELECT type, string_to_array(patterns, ' ') AS patterns FROM unnest($2::text[], $3::text[]) AS known (type, patterns)
   ),
   listening AS (
     SELECT id, events, organization_ids FROM hooks
     WHERE events && string_to_array(array_to_string($3::text[], ' '), ' ')
       AND (organization_ids IS NULL OR organization_ids && $4::text[]) FOR KEY SHARE
   ),
   wanted AS MATERIALIZED (
     SELECT named.type, id, organization_ids FROM named JOIN listening ON listening.events && named.patterns
   ),
   taken AS MATERIALIZED (
     SELECT removed.seq, event.* FROM removed CROSS JOIN LATERAL (
       SELECT id, type, entity_kind, entity_id, version, organization_id FROM outbox
       WHERE outbox.seq = removed.seq LIMIT 1) AS event
   ),
   queued AS (
     INSERT INTO deliveries (hook_id, event_id, type, entity_kind, entity_id, version)
     SELECT wanted.id, taken.id, taken.type, entity_kind, entity_id, version
     FROM taken JOIN wanted ON wanted.type = taken.type
       AND (wanted.organization_ids IS NULL OR taken.organization_id = ANY(wanted.organization_ids))
     ORDER BY seq, wanted.id
     ON CONFLICT (hook_id, entity_kind, entity_id, version) WHERE version IS NOT NULL DO NOTHING
     RETURNING hook_id, entity_kind, entity_id, version
   ),
   opened AS (
     INSERT INTO lanes (hook_id, entity_kind, entity_id, ready_at, from_version)
     SELECT hook_id, entity_kind, entity_id, now(), min(version) FROM queued GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
     ON CONFLICT (hook_id, entity_kind, entity_id) DO UPDATE SET from_version = excluded.from_version
       WHERE lanes.from_version > excluded.from_version
   )
   SELECT count(*) AS deliveries FROM queued`,
)

/**
 * Ingests events, once each: they are pending no more, and there is a delivery for every hook that listens, in a lane.
 * Runs in the transaction that has locked them. Returns how many deliveries there are to make.
 */
export const ingestEvents = async (query: Query, events: readonly PendingEvent[]): Promise<number> => {
  const types = [...new Set(events.map(({ type }) => type))]
  const patterns = types.map((type) => patternsOf(type).join(' '))
  const organizationIds = [...new Set(events.flatMap(({ organizationId }) => organizationId ?? []))]
  const values = [events.map(({ seq }) => seq), types, patterns, organizationIds]
  const [counted] = events.length > 0 ? await query<{ deliveries: number }>(ingest, values) : []
  return counted?.deliveries ?? 0
}
