import type { Migration } from '../platform/database/database.ts'

/** The table of 0048 takes the place of the one before, with its name and its first two columns; triggers keep it. */
export const userSearchExchange: Migration = {
  name: '0050-user-search-exchange',
  up: (knex) =>
    knex.raw(`
-- Who was deleted while the copy was made.
DELETE FROM new_user_search s WHERE NOT EXISTS (SELECT FROM users WHERE id = s.user_id);

-- In the order in which statements ask for both.
LOCK TABLE users, user_search IN ACCESS EXCLUSIVE MODE;
DROP TABLE user_search;
ALTER TABLE new_user_search RENAME TO user_search;
ALTER INDEX new_user_search_pkey RENAME TO user_search_pkey;
ALTER INDEX new_user_search_body RENAME TO user_search_body;
-- It holds for all rows: nothing to look through.
ALTER TABLE user_search
  ADD CONSTRAINT user_search_user_id_fkey FOREIGN KEY (user_id) REFERENCES users ON DELETE CASCADE NOT VALID;

CREATE OR REPLACE FUNCTION add_to_user_search() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO user_search (user_id, created_at, body) SELECT id, created_at, user_search_body(added) FROM added;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION keep_user_search() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE user_search SET created_at = NEW.created_at, body = user_search_body(NEW) WHERE user_id = NEW.id;
  RETURN NULL;
END $$;

DROP TRIGGER users_keep_search ON users;
CREATE TRIGGER users_keep_search AFTER UPDATE OF username, primary_email, primary_phone, name, created_at ON users
  FOR EACH ROW
  WHEN (OLD.created_at IS DISTINCT FROM NEW.created_at OR user_search_body(OLD) IS DISTINCT FROM user_search_body(NEW))
  EXECUTE FUNCTION keep_user_search();
DROP TRIGGER users_keep_new_search ON users;
DROP TRIGGER users_add_to_new_search ON users;
DROP TRIGGER users_remove_from_new_search ON users;
DROP FUNCTION add_to_new_user_search;
DROP FUNCTION keep_new_user_search;
DROP FUNCTION remove_from_new_user_search;
`),
}
