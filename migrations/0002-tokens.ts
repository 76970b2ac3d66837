import type { Migration } from '../platform/database/database.ts'

/**
 * Signing keys, subject tokens, opaque access tokens and impersonation sessions. No token stands here in clear: a
 * digest finds its row.
 */
export const tokens: Migration = {
  name: '0002-tokens',
  up: (knex) =>
    knex.raw(`
-- next (published, does not sign yet) → active (signs) → retiring (still verifies until expires_at).
CREATE TABLE signing_keys (
  kid          varchar(64)  PRIMARY KEY,
  algorithm    varchar(16)  NOT NULL CHECK (algorithm IN ('ES256', 'EdDSA', 'RS256')),
  state        varchar(16)  NOT NULL CHECK (state IN ('next', 'active', 'retiring')),
  public_jwk   jsonb        NOT NULL,
  -- The private JWK, sealed under the key-encryption key with the kid as associated data.
  private_jwk  bytea        NOT NULL,
  created_at   timestamptz  NOT NULL DEFAULT now(),
  activated_at timestamptz,
  retired_at   timestamptz,
  expires_at   timestamptz
);
CREATE UNIQUE INDEX signing_keys_one_active ON signing_keys (state) WHERE state = 'active';

-- Single use: consumed_at is set by one conditional UPDATE in the transaction that opens the session.
CREATE TABLE subject_tokens (
  digest      bytea         PRIMARY KEY,
  user_id     varchar(12)   NOT NULL REFERENCES users ON DELETE CASCADE,
  creator_id  varchar(21)   NOT NULL,
  context     jsonb         NOT NULL DEFAULT '{}',
  -- What the exchange must match, when given.
  client_id   varchar(21),
  resource    varchar(2048),
  scopes      text[],
  actor_id    varchar(12),
  reason      varchar(1024),
  ticket      varchar(256),
  created_at  timestamptz   NOT NULL DEFAULT now(),
  expires_at  timestamptz   NOT NULL,
  consumed_at timestamptz
);
CREATE INDEX subject_tokens_by_user ON subject_tokens (user_id);
CREATE INDEX subject_tokens_by_expiry ON subject_tokens (expires_at);

-- Access tokens without a resource. Those with one are JWTs and have no row.
CREATE TABLE opaque_tokens (
  digest     bytea        PRIMARY KEY,
  user_id    varchar(12)  NOT NULL REFERENCES users ON DELETE CASCADE,
  client_id  varchar(21)  NOT NULL,
  scope      text         NOT NULL,
  session_id varchar(21),
  act        jsonb,
  created_at timestamptz  NOT NULL DEFAULT now(),
  expires_at timestamptz  NOT NULL,
  revoked_at timestamptz
);
CREATE INDEX opaque_tokens_by_user ON opaque_tokens (user_id);
CREATE INDEX opaque_tokens_by_session ON opaque_tokens (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX opaque_tokens_by_expiry ON opaque_tokens (expires_at);

-- Who acted as whom. No foreign keys: a session outlives the users and clients it tells of.
CREATE TABLE impersonation_sessions (
  id         varchar(21)   PRIMARY KEY,
  subject_id varchar(12)   NOT NULL,
  actor_id   varchar(12),
  actor_via  varchar(16)   CHECK (actor_via IN ('sign_in', 'subject_token')),
  client_id  varchar(21)   NOT NULL,
  creator_id varchar(21)   NOT NULL,
  resource   varchar(2048),
  scopes     text[]        NOT NULL,
  context    jsonb         NOT NULL,
  reason     varchar(1024),
  ticket     varchar(256),
  token_id   varchar(64)   NOT NULL,
  started_at timestamptz   NOT NULL DEFAULT now(),
  expires_at timestamptz   NOT NULL,
  ended_at   timestamptz,
  ended_by   varchar(64)
);
CREATE INDEX impersonation_sessions_by_start ON impersonation_sessions (started_at DESC, id);
CREATE INDEX impersonation_sessions_by_subject ON impersonation_sessions (subject_id, started_at DESC);
CREATE INDEX impersonation_sessions_by_actor ON impersonation_sessions (actor_id, started_at DESC) WHERE actor_id IS NOT NULL;
`),
}
