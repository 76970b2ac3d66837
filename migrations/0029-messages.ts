import type { Migration } from '../platform/database/database.ts'

/** Mail and SMS to people: what waits to be sent, through which provider, and how much was sent to whom. */
export const messages: Migration = {
  name: '0029-messages',
  up: (knex) =>
    knex.raw(`
-- Where messages go, and where people are known already. Of e-mail and SMS there is one at a time.
CREATE TABLE connectors (
  id            varchar(21) PRIMARY KEY,
  -- The kind of provider: a row of the table of factories.
  connector_id  text        NOT NULL,
  type          text        NOT NULL CHECK (type IN ('Email', 'Sms', 'Social')),
  sealed_config bytea       NOT NULL,
  sync_profile  boolean     NOT NULL DEFAULT false,
  metadata      jsonb       NOT NULL DEFAULT '{}',
  created_at    timestamptz NOT NULL DEFAULT now(),
  updated_at    timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX connectors_one_sender ON connectors (type) WHERE type IN ('Email', 'Sms');

CREATE TABLE messages (
  id              varchar(21) PRIMARY KEY,
  channel         text        NOT NULL CHECK (channel IN ('email', 'sms')),
  -- Of the template: SignIn, PasswordChanged, …
  type            text        NOT NULL,
  -- The factory that it went to last.
  connector       text,
  -- Recipient and texts; erased when the message was sent or given up.
  sealed          bytea,
  state           text        NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'sent', 'failed', 'expired')),
  -- The category of the last failure; nothing that a provider said.
  error           text,
  attempts        integer     NOT NULL DEFAULT 0,
  -- While a relay sends it, when others take it over.
  next_attempt_at timestamptz NOT NULL DEFAULT now(),
  created_at      timestamptz NOT NULL DEFAULT now(),
  -- It is not sent after that.
  expires_at      timestamptz NOT NULL,
  finished_at     timestamptz,
  CHECK ((state = 'waiting') = (sealed IS NOT NULL)),
  CHECK ((state = 'waiting') = (finished_at IS NULL))
);
CREATE INDEX messages_due ON messages (channel, next_attempt_at) WHERE state = 'waiting';
CREATE INDEX messages_by_expiry ON messages (expires_at) WHERE state = 'waiting';
CREATE INDEX messages_by_end ON messages (finished_at) WHERE state <> 'waiting';

-- What was asked for within a window. The key is an HMAC of what is counted: a recipient, an address, a provider.
CREATE TABLE message_counts (
  key        bytea       PRIMARY KEY,
  count      integer     NOT NULL,
  since      timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX message_counts_by_update ON message_counts (updated_at);
`),
}
