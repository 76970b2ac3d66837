import type { Migration } from '../platform/database/database.ts'

/**
 * The factors of a person beside the password. A row for each thing, so that what happens to one at the same time as to
 * another is never lost.
 */
export const factors: Migration = {
  name: '0030-factors',
  up: (knex) =>
    knex.raw(`
CREATE TABLE totp_secrets (
  id           varchar(21) PRIMARY KEY,
  -- One for each person: authenticator apps tell two of one account apart by nothing.
  user_id      varchar(12) NOT NULL CONSTRAINT totp_secrets_once UNIQUE REFERENCES users ON DELETE CASCADE,
  sealed       bytea       NOT NULL,
  -- The newest time step whose code was used (RFC 6238 §5.2): neither it nor an older one is good again.
  last_step    bigint      NOT NULL DEFAULT 0,
  -- When a code was first right. NULL: the secret was handed out by an administrator and not used yet.
  confirmed_at timestamptz,
  last_used_at timestamptz,
  created_at   timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE backup_codes (
  -- An HMAC: 50 bits are too few for a plain digest.
  digest     bytea       PRIMARY KEY,
  -- Of the codes that were made together.
  set_id     varchar(21) NOT NULL,
  user_id    varchar(12) NOT NULL REFERENCES users ON DELETE CASCADE,
  created_at timestamptz NOT NULL DEFAULT now(),
  used_at    timestamptz
);
CREATE INDEX backup_codes_by_user ON backup_codes (user_id);

CREATE TABLE passkeys (
  id                 varchar(21) PRIMARY KEY,
  user_id            varchar(12) NOT NULL REFERENCES users ON DELETE CASCADE,
  credential_id      bytea       NOT NULL CONSTRAINT passkeys_credential UNIQUE,
  -- SubjectPublicKeyInfo, DER.
  public_key         bytea       NOT NULL,
  -- A COSE algorithm: -7, -8 or -257.
  algorithm          integer     NOT NULL,
  sign_count         bigint      NOT NULL,
  transports         text[]      NOT NULL DEFAULT '{}',
  -- It may live on several devices. Never changes.
  is_backup_eligible boolean     NOT NULL,
  -- It does now.
  is_backed_up       boolean     NOT NULL,
  name               text,
  -- User-Agent of the browser that it was made with.
  agent              text,
  created_at         timestamptz NOT NULL DEFAULT now(),
  last_used_at       timestamptz
);
CREATE INDEX passkeys_by_user ON passkeys (user_id);

-- What authenticators know the person by: 32 random bytes, made with the first passkey.
ALTER TABLE users ADD COLUMN webauthn_handle bytea;
-- Partial, so that to set it does not lock out those who only refer to the person. The users are read once for it, and
-- are locked meanwhile: 0.4 s for a million.
CREATE UNIQUE INDEX users_webauthn_handle ON users (webauthn_handle) WHERE webauthn_handle IS NOT NULL;
`),
}
