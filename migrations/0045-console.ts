import type { Migration } from '../platform/database/database.ts'

/** The administration console: who is signed in to it, who is invited, and that an owner always remains. */
export const console: Migration = {
  name: '0045-console',
  up: (knex) =>
    knex.raw(`
-- A browser in which somebody uses the console. Its tokens never leave the server.
CREATE TABLE console_sessions (
  id               varchar(21)  PRIMARY KEY,
  digest           bytea        NOT NULL UNIQUE,
  user_id          varchar(12)  NOT NULL REFERENCES users ON DELETE CASCADE,
  authorization_id varchar(21)  NOT NULL REFERENCES authorizations ON DELETE CASCADE,
  -- JSON: access and refresh token.
  sealed           bytea        NOT NULL,
  -- Of the access token.
  scopes           text[]       NOT NULL,
  token_expires_at timestamptz  NOT NULL,
  created_at       timestamptz  NOT NULL DEFAULT now(),
  last_seen_at     timestamptz  NOT NULL DEFAULT now(),
  -- Its absolute end, whatever happens in it.
  expires_at       timestamptz  NOT NULL
);
CREATE INDEX console_sessions_by_user ON console_sessions (user_id);
CREATE INDEX console_sessions_by_authorization ON console_sessions (authorization_id);
CREATE INDEX console_sessions_by_expiry ON console_sessions (expires_at);

-- A link that makes whoever opens it a member of the console, once.
CREATE TABLE console_invitations (
  digest     bytea        PRIMARY KEY,
  role_id    varchar(21)  NOT NULL,
  -- The link of a start holds only while there is no owner.
  is_first   boolean      NOT NULL,
  created_at timestamptz  NOT NULL DEFAULT now(),
  expires_at timestamptz  NOT NULL,
  -- What a passkey is made for: whom, and in answer to what. Base64url.
  passkey_handle    varchar(43),
  passkey_challenge varchar(43)
);
CREATE INDEX console_invitations_by_expiry ON console_invitations (expires_at);

-- One after the other: whoever comes second does not count the first any more.
CREATE FUNCTION keep_console_owner() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  PERFORM pg_advisory_xact_lock(7305145);
  IF NOT EXISTS (SELECT FROM user_roles o JOIN users u ON u.id = o.user_id
                 WHERE o.role_id = 'console-owner' AND NOT u.is_suspended) THEN
    RAISE EXCEPTION 'the last owner of the console stays'
      USING ERRCODE = 'check_violation', CONSTRAINT = 'console_last_owner';
  END IF;
  RETURN NULL;
END $body$;
CREATE FUNCTION keep_console_owner_active() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  IF EXISTS (SELECT FROM user_roles WHERE role_id = 'console-owner' AND user_id = NEW.id) THEN
    PERFORM pg_advisory_xact_lock(7305145);
    IF NOT EXISTS (SELECT FROM user_roles o JOIN users u ON u.id = o.user_id
                   WHERE o.role_id = 'console-owner' AND NOT u.is_suspended) THEN
      RAISE EXCEPTION 'the last owner of the console stays'
        USING ERRCODE = 'check_violation', CONSTRAINT = 'console_last_owner';
    END IF;
  END IF;
  RETURN NULL;
END $body$;
CREATE TRIGGER keep_console_owner AFTER DELETE ON user_roles
  FOR EACH ROW WHEN (OLD.role_id = 'console-owner') EXECUTE FUNCTION keep_console_owner();
CREATE TRIGGER keep_console_owner_active AFTER UPDATE OF is_suspended ON users
  FOR EACH ROW WHEN (NEW.is_suspended AND NOT OLD.is_suspended) EXECUTE FUNCTION keep_console_owner_active();
`),
}
