import type { Migration } from '../platform/database/database.ts'

/**
 * The search text of users with the time of their creation, in three steps that let issuers work: an empty table that
 * triggers keep beside the one that is read (this one), what was there before (0049), the exchange (0050). A list that
 * is searched is in that order, and looked every found user up in the wide table for it: thousands for three digits
 * among a million.
 */
export const userSearchBeside: Migration = {
  name: '0048-user-search-beside',
  up: (knex) =>
    knex.raw(`
CREATE TABLE new_user_search (
  user_id    varchar(12) CONSTRAINT new_user_search_pkey PRIMARY KEY,
  created_at timestamptz NOT NULL,
  body       text COLLATE "C" NOT NULL
);
CREATE INDEX new_user_search_body ON new_user_search USING gin (body gin_trgm_ops);
CREATE INDEX user_search_by_creation ON new_user_search (created_at DESC, user_id);

CREATE FUNCTION add_to_new_user_search() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO new_user_search SELECT id, created_at, user_search_body(added) FROM added;
  RETURN NULL;
END $$;

CREATE FUNCTION keep_new_user_search() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO new_user_search VALUES (NEW.id, NEW.created_at, user_search_body(NEW))
  ON CONFLICT (user_id) DO UPDATE SET created_at = excluded.created_at, body = excluded.body;
  RETURN NULL;
END $$;

CREATE FUNCTION remove_from_new_user_search() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM new_user_search USING removed WHERE user_id = id;
  RETURN NULL;
END $$;

CREATE TRIGGER users_add_to_new_search AFTER INSERT ON users REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION add_to_new_user_search();
CREATE TRIGGER users_keep_new_search
  AFTER UPDATE OF username, primary_email, primary_phone, name, created_at ON users FOR EACH ROW
  WHEN (OLD.created_at IS DISTINCT FROM NEW.created_at OR user_search_body(OLD) IS DISTINCT FROM user_search_body(NEW))
  EXECUTE FUNCTION keep_new_user_search();
CREATE TRIGGER users_remove_from_new_search AFTER DELETE ON users REFERENCING OLD TABLE AS removed
  FOR EACH STATEMENT EXECUTE FUNCTION remove_from_new_user_search();
`),
}
