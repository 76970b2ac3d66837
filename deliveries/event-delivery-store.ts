import { type Query, statement } from '../platform/database/database.ts'
import { type DeliveryRow, deliveryColumns, shownState, withLane } from './delivery-log-store.ts'

/** A delivery of an event, with the name of its hook and its last attempts. */
export interface EventDelivery extends DeliveryRow {
  hookName: string
  finishedAt: Date | null
  lastAttempts: ToldAttempt[]
}

/** An attempt without what was sent and answered. Times as ISO 8601. */
export interface ToldAttempt {
  at: string
  status: number | null
  succeeded: boolean
  durationMs: number
  error: string | null
}

const mostAttempts = 10

// Deliveries are found by their lane: of every hook the one with the version of the event.
const ofEvents = statement(
  'deliveries-of-events',
  `SELECT ${deliveryColumns}, ${shownState} AS state, hooks.name AS "hookName", deliveries.finished_at AS "finishedAt",
     ARRAY(SELECT json_build_object('at', at, 'status', status, 'succeeded', succeeded, 'durationMs', duration_ms,
             'error', error)
           FROM (SELECT * FROM delivery_attempts WHERE delivery_id = deliveries.id
                 ORDER BY delivery_attempts.id DESC LIMIT ${mostAttempts}) AS last ORDER BY last.id) AS "lastAttempts"
   FROM outbox JOIN (${withLane}) ON deliveries.entity_kind = outbox.entity_kind
     AND deliveries.entity_id = outbox.entity_id AND deliveries.version = outbox.version
   WHERE outbox.id = ANY($1::uuid[]) AND deliveries.event_id = outbox.id AND NOT deliveries.test
   ORDER BY deliveries.id`,
)

/** What became of events at every hook that hears of them, at most 10 attempts of each, the last ones. */
export const deliveriesOfEvents = (query: Query, eventIds: readonly string[]): Promise<EventDelivery[]> =>
  query<EventDelivery>(ofEvents, [eventIds])
