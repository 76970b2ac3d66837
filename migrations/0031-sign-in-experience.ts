import type { Migration } from '../platform/database/database.ts'

/** The settings of signing in can be kept in memory: whoever changes one changes a revision, and says so. */
export const signInExperience: Migration = {
  name: '0031-sign-in-experience',
  up: (knex) =>
    knex.raw(`
-- What an application sets for its own pages, above the settings of the issuer.
CREATE TABLE application_sign_in_experiences (
  application_id varchar(21) PRIMARY KEY REFERENCES applications ON DELETE CASCADE,
  value          jsonb       NOT NULL,
  updated_at     timestamptz NOT NULL DEFAULT now()
);

-- Pictures of operators. The id is the digest of the content, so a row never changes.
CREATE TABLE assets (
  id         text        PRIMARY KEY,
  type       text        NOT NULL,
  content    bytea       NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- One row: how often settings were changed. Writers wait for each other here, so revisions follow commits.
CREATE TABLE settings_revision (
  revision bigint NOT NULL
);
INSERT INTO settings_revision VALUES (1);

-- By triggers, because issuers of an older version change settings too.
CREATE FUNCTION settings_changed() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  UPDATE settings_revision SET revision = revision + 1;
  PERFORM pg_notify('surrogate_settings', '');
  RETURN NULL;
END $body$;
CREATE TRIGGER settings_changed AFTER INSERT OR UPDATE OR DELETE ON settings
  FOR EACH ROW EXECUTE FUNCTION settings_changed();
CREATE TRIGGER settings_changed AFTER INSERT OR UPDATE OR DELETE ON application_sign_in_experiences
  FOR EACH ROW EXECUTE FUNCTION settings_changed();
`),
}
