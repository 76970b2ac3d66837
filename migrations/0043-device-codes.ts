import type { Migration } from '../platform/database/database.ts'

/** Sign-ins that a device asks for and a person allows in a browser (RFC 8628). */
export const deviceCodes: Migration = {
  name: '0043-device-codes',
  up: (knex) =>
    knex.raw(`
CREATE TABLE device_codes (
  digest        bytea       PRIMARY KEY,
  -- An HMAC: 35 bits would be found out from a plain digest.
  user_code     bytea       NOT NULL CONSTRAINT device_codes_user_code UNIQUE,
  client_id     varchar(21) NOT NULL REFERENCES applications ON DELETE CASCADE,
  -- What was asked for, checked.
  request       jsonb       NOT NULL,
  -- Where it was asked from; the person is shown it.
  address       text        NOT NULL,
  -- How long the device must wait between two polls, in seconds.
  poll_interval smallint    NOT NULL,
  polled_at     timestamptz,
  -- The last poll came before its time.
  is_too_soon   boolean     NOT NULL DEFAULT false,
  created_at    timestamptz NOT NULL DEFAULT now(),
  expires_at    timestamptz NOT NULL,
  -- When the person decided. Once allowed, an authorization code has this row's digest.
  decided_at    timestamptz,
  is_allowed    boolean
);
CREATE INDEX device_codes_by_client ON device_codes (client_id);
CREATE INDEX device_codes_by_expiry ON device_codes (expires_at);
`),
}
