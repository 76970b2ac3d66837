import type { Migration } from '../platform/database/database.ts'

/**
 * Personal access tokens, what tells a token or an actor that came from one, and the look-ups of the impersonation
 * trail.
 */
export const personalAccessTokens: Migration = {
  name: '0006-personal-access-tokens',
  up: (knex) =>
    knex.raw(`
-- Values are 256 random bits, so a plain SHA-256 is enough; the value itself is shown once and not kept.
CREATE TABLE personal_access_tokens (
  digest       bytea        PRIMARY KEY,
  user_id      varchar(12)  NOT NULL REFERENCES users ON DELETE CASCADE,
  name         varchar(256) NOT NULL,
  -- What may be asked for with it. NULL: whatever its user holds.
  scopes       text[],
  created_at   timestamptz  NOT NULL DEFAULT now(),
  expires_at   timestamptz,
  -- To the minute.
  last_used_at timestamptz,
  CONSTRAINT personal_access_tokens_name UNIQUE (user_id, name)
) WITH (fillfactor = 90);

-- The JWTs it was exchanged for that have not expired: they end with it.
CREATE TABLE personal_access_token_issues (
  digest     bytea       NOT NULL REFERENCES personal_access_tokens ON DELETE CASCADE,
  -- jti
  token_id   varchar(64) NOT NULL,
  expires_at timestamptz NOT NULL
);
CREATE INDEX personal_access_token_issues_by_token ON personal_access_token_issues (digest, expires_at);

-- What came from a personal access token is bound to its scopes, so it cannot be exchanged for more, and ends with it.
ALTER TABLE opaque_tokens ADD COLUMN personal_access_token bytea;
CREATE INDEX opaque_tokens_by_personal_access_token ON opaque_tokens (personal_access_token) WHERE personal_access_token IS NOT NULL;

ALTER TABLE impersonation_sessions ALTER COLUMN actor_via TYPE varchar(32);
ALTER TABLE impersonation_sessions DROP CONSTRAINT impersonation_sessions_actor_via_check;
ALTER TABLE impersonation_sessions ADD CONSTRAINT impersonation_sessions_actor_via
  CHECK (actor_via IN ('sign_in', 'subject_token', 'personal_access_token'));

CREATE INDEX impersonation_sessions_by_client ON impersonation_sessions (client_id, started_at DESC);
CREATE INDEX impersonation_sessions_by_ticket ON impersonation_sessions (ticket, started_at DESC) WHERE ticket IS NOT NULL;
`),
}
