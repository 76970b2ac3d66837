import type { Migration } from '../platform/database/database.ts'

/**
 * Fewer bytes and index entries for each event and delivery. The marks of an event move to a narrow row that lives
 * until the event is taken in, so that its own row, with the payload, is written once; indexes that nobody but
 * retention reads become ranges of blocks, or go.
 */
export const outboxPending: Migration = {
  name: '0020-outbox-pending',
  up: (knex) =>
    knex.raw(`
-- Events whose deliveries do not exist yet. Made with the event; whoever takes it in removes the row, in the same transaction.
CREATE TABLE outbox_pending (
  seq          bigint      PRIMARY KEY,
  -- Handed to a broker, which confirmed it. Stays NULL where events travel through this table itself.
  published_at timestamptz
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
INSERT INTO outbox_pending (seq, published_at) SELECT seq, published_at FROM outbox WHERE ingested_at IS NULL;
CREATE INDEX outbox_pending_unpublished ON outbox_pending (seq) WHERE published_at IS NULL;
DROP INDEX outbox_unpublished, outbox_uningested;
ALTER TABLE outbox DROP COLUMN published_at, DROP COLUMN ingested_at;

-- Rows come in the order of time, so what is older than a moment lies together.
DROP INDEX outbox_by_creation, delivery_attempts_by_time;
CREATE INDEX outbox_by_creation ON outbox USING brin (created_at) WITH (autosummarize = on);
CREATE INDEX delivery_attempts_by_time ON delivery_attempts USING brin (at) WITH (autosummarize = on);

DROP INDEX delivery_attempts_by_delivery, deliveries_by_event;
ALTER TABLE delivery_attempts DROP CONSTRAINT delivery_attempts_pkey, ADD PRIMARY KEY (delivery_id, id);
`),
}
