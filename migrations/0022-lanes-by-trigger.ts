import type { Migration } from '../platform/database/database.ts'

/**
 * Lanes end with their hook by a trigger. A foreign key does that too, but looks the hook up, and locks it, for each
 * new lane. Whoever opens lanes has the hook locked already.
 */
export const lanesByTrigger: Migration = {
  name: '0022-lanes-by-trigger',
  up: (knex) =>
    knex.raw(`
ALTER TABLE lanes DROP CONSTRAINT lanes_hook_id_fkey;
CREATE FUNCTION hook_deleted() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  DELETE FROM lanes WHERE hook_id = OLD.id;
  RETURN NULL;
END $body$;
CREATE TRIGGER hook_deleted AFTER DELETE ON hooks FOR EACH ROW EXECUTE FUNCTION hook_deleted();
`),
}
