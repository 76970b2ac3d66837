import type { Migration } from '../platform/database/database.ts'

/**
 * Hooks for some organizations only, replays that outlive whoever runs them, test-sends, and what pulling readers can
 * no longer get.
 */
export const hooksAndReplays: Migration = {
  name: '0017-hooks-and-replays',
  up: (knex) =>
    knex.raw(`
-- NULL: whatever the organization, and also what belongs to none.
ALTER TABLE hooks ADD COLUMN organization_ids text[];

-- Events are walked by seq: in the order of versions within an entity. How far it got and what it queued are one transaction.
CREATE TABLE replays (
  id          varchar(21) PRIMARY KEY,
  hook_id     varchar(21) NOT NULL REFERENCES hooks ON DELETE CASCADE,
  filter      jsonb       NOT NULL,
  -- What matched when it was asked for.
  total       bigint      NOT NULL,
  queued      bigint      NOT NULL DEFAULT 0,
  -- Done up to this seq; ends at that one.
  done_seq    bigint      NOT NULL,
  last_seq    bigint      NOT NULL,
  state       text        NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'done', 'cancelled')),
  created_at  timestamptz NOT NULL DEFAULT now(),
  finished_at timestamptz
);
CREATE INDEX replays_running ON replays (created_at) WHERE state = 'running';
CREATE INDEX replays_by_hook ON replays (hook_id, created_at DESC, id);

-- A test-send to somewhere else than its hook points: a change that is tried before it is saved.
CREATE TABLE test_targets (
  delivery_id    bigint        PRIMARY KEY,
  url            varchar(2048) NOT NULL,
  sealed_headers bytea,
  created_at     timestamptz   NOT NULL DEFAULT now()
);

-- The highest seq that retention has removed: who reads on from below it has missed something.
CREATE TABLE outbox_removed (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  seq      bigint  NOT NULL DEFAULT 0
);
INSERT INTO outbox_removed DEFAULT VALUES;
`),
}
