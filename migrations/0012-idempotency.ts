import type { Migration } from '../platform/database/database.ts'

/** The answers to requests with an `Idempotency-Key`, until retention removes them. */
export const idempotency: Migration = {
  name: '0012-idempotency',
  up: (knex) =>
    knex.raw(`
CREATE TABLE idempotency_answers (
  -- SHA-256 of client, route and key, in hexadecimal.
  id         varchar(64) PRIMARY KEY,
  status     smallint    NOT NULL,
  -- What the request was and what it was answered. A plain digest of the request would be one of the passwords in it.
  sealed     bytea       NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX idempotency_answers_by_time ON idempotency_answers (created_at);
`),
}
