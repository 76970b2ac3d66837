import type { Migration } from '../platform/database/database.ts'

/** How far impersonation sessions have been told to those who were impersonated. */
export const notices: Migration = {
  name: '0034-notices',
  up: (knex) =>
    knex.raw(`
-- One row: the cursor in the ledger. What was recorded before nobody is told any more.
CREATE TABLE notice_cursor (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  seq       bigint  NOT NULL
);
INSERT INTO notice_cursor (seq) SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM outbox_seq_seq;
`),
}
