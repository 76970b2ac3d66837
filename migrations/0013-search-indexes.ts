import type { Migration } from '../platform/database/database.ts'

/**
 * What lists, searches and totals of the Management API stand on, so that none of them reads a large table from end to
 * end.
 *
 * Search: one trigram index a table, over every field that is searched. `pg_trgm` is part of PostgreSQL's own contrib
 * modules and trusted: whoever may create in the database may create it.
 *
 * Totals: counting a million users takes tens of milliseconds and reads an index whole, for every page of the list.
 * `row_counts` holds the number instead, kept by triggers in the transaction of the change, so it is exact for every
 * reader. It is spread over slots, because two transactions that write to one wait for each other; its sum is the
 * number.
 */
export const searchIndexes: Migration = {
  name: '0013-search-indexes',
  up: (knex) =>
    knex.raw(`
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE INDEX users_search ON users USING gin (
  name gin_trgm_ops, primary_email gin_trgm_ops, username gin_trgm_ops, primary_phone gin_trgm_ops, id gin_trgm_ops);
CREATE INDEX users_username_folded ON users (lower(username));
CREATE INDEX users_primary_email_folded ON users (lower(primary_email));
CREATE INDEX roles_search ON roles USING gin (name gin_trgm_ops, description gin_trgm_ops, id gin_trgm_ops);
CREATE INDEX applications_search ON applications USING gin (name gin_trgm_ops, description gin_trgm_ops, id gin_trgm_ops);
CREATE INDEX organizations_search ON organizations USING gin (name gin_trgm_ops, description gin_trgm_ops, id gin_trgm_ops);

CREATE INDEX roles_by_creation ON roles (created_at DESC, id);
CREATE INDEX applications_by_creation ON applications (created_at DESC, id);
CREATE INDEX applications_by_type ON applications (type, created_at DESC, id);
CREATE INDEX resources_by_creation ON resources (created_at DESC, id);
CREATE INDEX scopes_by_creation ON scopes (resource_id, created_at, id);

-- The first few of those who hold a role are found without reading the others.
CREATE INDEX user_roles_by_holder ON user_roles (role_id, user_id);
DROP INDEX user_roles_by_role;
CREATE INDEX application_roles_by_holder ON application_roles (role_id, application_id);
DROP INDEX application_roles_by_role;

-- Who has an identity elsewhere.
CREATE INDEX users_identities ON users USING gin (identities jsonb_path_ops);

CREATE TABLE row_counts (
  relation text     NOT NULL,
  slot     smallint NOT NULL,
  -- A slot may be below zero: rows are added through one and taken away through another.
  count    bigint   NOT NULL,
  PRIMARY KEY (relation, slot)
) WITH (fillfactor = 50);

CREATE FUNCTION keep_row_count() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  change bigint;
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    DELETE FROM row_counts WHERE relation = TG_TABLE_NAME;
    RETURN NULL;
  END IF;
  SELECT count(*) INTO change FROM changed;
  IF change > 0 THEN
    IF TG_OP = 'DELETE' THEN change := -change; END IF;
    INSERT INTO row_counts AS kept VALUES (TG_TABLE_NAME, pg_backend_pid() % 64, change)
    ON CONFLICT (relation, slot) DO UPDATE SET count = kept.count + excluded.count;
  END IF;
  RETURN NULL;
END $$;

-- Nobody adds or removes users between the count and the triggers.
LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE;
INSERT INTO row_counts SELECT 'users', 0, count(*) FROM users;
CREATE TRIGGER users_added AFTER INSERT ON users REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION keep_row_count();
CREATE TRIGGER users_removed AFTER DELETE ON users REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION keep_row_count();
CREATE TRIGGER users_emptied AFTER TRUNCATE ON users FOR EACH STATEMENT EXECUTE FUNCTION keep_row_count();
`),
}
