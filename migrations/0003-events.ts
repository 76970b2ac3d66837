import type { Migration } from '../platform/database/database.ts'

/**
 * The ledger of events: what happened (`outbox`), who is to be told (`hooks`), and how far that got (`deliveries`,
 * `lanes`, `delivery_attempts`). Issuer and relay share it, so the inbox is not a copy but the mark `ingested_at` on
 * the outbox row: set once, in the transaction that makes the deliveries.
 */
export const events: Migration = {
  name: '0003-events',
  up: (knex) =>
    knex.raw(`
-- The version of an entity counts its events. Its row lock makes the order of versions the order of commits.
CREATE TABLE entity_versions (
  kind    text   NOT NULL,
  id      text   NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (kind, id)
) WITH (fillfactor = 70);

CREATE TABLE outbox (
  id              uuid        PRIMARY KEY,
  -- Assigned under the lock of the entity: in order per entity, but across entities a lower number may become visible later.
  seq             bigint      GENERATED ALWAYS AS IDENTITY,
  entity_kind     text        NOT NULL,
  entity_id       text        NOT NULL,
  version         bigint      NOT NULL,
  type            text        NOT NULL,
  organization_id text,
  correlation_id  uuid        NOT NULL,
  -- The body that receivers get, but for its first member (hookId). Bytes, so that every delivery and replay has the same.
  payload         bytea       NOT NULL,
  created_at      timestamptz NOT NULL DEFAULT now(),
  -- Handed to a broker, which confirmed it. Stays NULL where events travel through this table itself.
  published_at    timestamptz,
  -- The inbox: deliveries to all matching hooks exist.
  ingested_at     timestamptz,
  CONSTRAINT outbox_version UNIQUE (entity_kind, entity_id, version)
);
CREATE INDEX outbox_seq ON outbox (seq);
CREATE INDEX outbox_unpublished ON outbox (seq) WHERE published_at IS NULL AND ingested_at IS NULL;
CREATE INDEX outbox_uningested ON outbox (seq) WHERE ingested_at IS NULL;
CREATE INDEX outbox_by_creation ON outbox (created_at);

CREATE TABLE hooks (
  id              varchar(21)   PRIMARY KEY,
  name            varchar(256)  NOT NULL,
  events          text[]        NOT NULL,
  url             varchar(2048) NOT NULL,
  -- Sealed JSON: custom headers often are credentials.
  sealed_headers  bytea,
  -- Accepted and shown for existing clients; the schedule of retries is ours.
  retries         smallint,
  enabled         boolean       NOT NULL DEFAULT true,
  created_at      timestamptz   NOT NULL DEFAULT now(),
  -- Written by the relay.
  disabled_at     timestamptz,
  disabled_reason text,
  paused_until    timestamptz,
  failing_since   timestamptz
);
CREATE INDEX hooks_by_creation ON hooks (created_at DESC, id);

-- The current key has no end; old ones sign along until theirs.
CREATE TABLE hook_signing_keys (
  id         varchar(21) PRIMARY KEY,
  hook_id    varchar(21) NOT NULL REFERENCES hooks ON DELETE CASCADE,
  sealed     bytea       NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz
);
CREATE UNIQUE INDEX hook_signing_keys_current ON hook_signing_keys (hook_id) WHERE expires_at IS NULL;
CREATE INDEX hook_signing_keys_by_hook ON hook_signing_keys (hook_id, created_at DESC);

-- One event for one hook. Two more states are read off: an open delivery is "held" while its hook is disabled and "sending" while
-- its lane is leased for it. No foreign keys: rows outlive their hook until retention removes them.
CREATE TABLE deliveries (
  id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  hook_id         varchar(21) NOT NULL,
  event_id        uuid        NOT NULL,
  type            text        NOT NULL,
  entity_kind     text        NOT NULL,
  entity_id       text        NOT NULL,
  version         bigint      NOT NULL,
  state           text        NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'retrying', 'succeeded', 'dead', 'cancelled')),
  -- Real POSTs only.
  attempts        smallint    NOT NULL DEFAULT 0,
  next_attempt_at timestamptz NOT NULL DEFAULT now(),
  last_status     smallint,
  last_error      text,
  created_at      timestamptz NOT NULL DEFAULT now(),
  finished_at     timestamptz,
  -- A test-send carries its own body: it has no row in the outbox.
  test            boolean     NOT NULL DEFAULT false,
  payload         bytea,
  CONSTRAINT deliveries_lane UNIQUE (hook_id, entity_kind, entity_id, version),
  CONSTRAINT deliveries_payload CHECK (test = (payload IS NOT NULL))
) WITH (fillfactor = 80);
CREATE INDEX deliveries_open ON deliveries (hook_id, entity_kind, entity_id, version) WHERE state IN ('pending', 'retrying');
CREATE INDEX deliveries_by_hook ON deliveries (hook_id, id DESC);
CREATE INDEX deliveries_by_event ON deliveries (event_id);

-- One row for every (hook, entity) with open deliveries. Only its first open delivery may be sent, by who holds the lease: claiming
-- takes a fresh fence and moves ready_at behind the lease's end, so an abandoned lease becomes due by itself.
CREATE SEQUENCE lane_fences;
CREATE TABLE lanes (
  hook_id     varchar(21) NOT NULL REFERENCES hooks ON DELETE CASCADE,
  entity_kind text        NOT NULL,
  entity_id   text        NOT NULL,
  ready_at    timestamptz NOT NULL,
  fence       bigint      NOT NULL DEFAULT 0,
  -- The relay that holds it; NULL: nobody.
  leased_by   uuid,
  PRIMARY KEY (hook_id, entity_kind, entity_id)
) WITH (fillfactor = 70);
CREATE INDEX lanes_due ON lanes (hook_id, ready_at);

CREATE TABLE delivery_attempts (
  id               bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  delivery_id      bigint      NOT NULL,
  hook_id          varchar(21) NOT NULL,
  at               timestamptz NOT NULL,
  duration_ms      integer     NOT NULL,
  succeeded        boolean     NOT NULL,
  -- Custom header values are not kept.
  request_headers  jsonb       NOT NULL,
  status           smallint,
  response_headers jsonb,
  -- Its first 16 kB. Bytes: receivers answer with anything.
  response_body    bytea,
  error            text,
  address          text
);
CREATE INDEX delivery_attempts_by_delivery ON delivery_attempts (delivery_id, id);
CREATE INDEX delivery_attempts_by_hook ON delivery_attempts (hook_id, at DESC);
CREATE INDEX delivery_attempts_by_time ON delivery_attempts (at);
`),
}
