import { setTimeout as delay } from 'node:timers/promises'
import type { EventBus, EventConsumer } from '../../events/bus.ts'
import type { Database } from '../../platform/database/database.ts'
import { ingestEvents } from '../../relay/ledger/ingest-store.ts'
import { inOrder, lockPending } from '../../relay/ledger/pending-store.ts'

/**
 * The product as it is, and with one of its parts replaced by what one might have built instead. A harness that finds
 * nothing wrong with the others proves nothing about the first.
 */
export const variants = ['none', 'no-reconciler', 'ack-first', 'no-lanes'] as const
export type Variant = (typeof variants)[number]

/** How long the relay that acknowledges first takes for the rest, in ms. */
const afterwardsMs = 300

interface Replacement {
  /** Run once, before there are events. */
  schema?: string
  bus?(bus: EventBus, database: Database): EventBus
}

export const replacements: Record<Variant, Replacement> = {
  none: {},

  /** Believes the broker: what was confirmed will arrive. */
  'no-reconciler': { bus: (bus) => ({ ...bus, lostBefore: async () => undefined }) },

  /** Says that an event was taken in, to the ledger and to the broker, before its deliveries stand. */
  'ack-first': {
    bus: (bus, database) => ({
      ...bus,
      consume: (_consumer, options) => bus.consume(acknowledgeFirst(database), options),
    }),
  },

  /** Every event for itself: as many lanes as deliveries. */
  'no-lanes': {
    schema: `
      CREATE FUNCTION chaos_lane() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN NEW.entity_id := NEW.entity_id || '#' || NEW.version; RETURN NEW; END $$;
      CREATE TRIGGER chaos_lane BEFORE INSERT ON deliveries FOR EACH ROW EXECUTE FUNCTION chaos_lane()`,
  },
}

const acknowledgeFirst = (database: Database): EventConsumer => ({
  async ingest(messages) {
    const { rows } = await database.pool.query<{ id: string }>(
      `DELETE FROM outbox_pending USING outbox
       WHERE outbox.seq = outbox_pending.seq AND outbox.id = ANY($1::uuid[]) RETURNING outbox.id`,
      [messages.map(({ eventId }) => eventId)],
    )
    const taken = rows.map(({ id }) => id)
    void delay(afterwardsMs)
      .then(() =>
        database.transaction(async (query) => {
          const pendingAgain = {
            name: 'chaos-pending-again',
            text: 'INSERT INTO outbox_pending (seq) SELECT seq FROM outbox WHERE id = ANY($1::uuid[])',
          }
          await query(pendingAgain, [taken])
          await ingestEvents(query, inOrder(await lockPending(query, taken)))
        }),
      )
      .catch(() => {})
    return { deferred: 0, unknown: [] }
  },
  ingestNext: () => Promise.reject(new Error('this variant needs a broker')),
})
