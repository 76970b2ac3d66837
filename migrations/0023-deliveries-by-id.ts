import type { Migration } from '../platform/database.ts'

/**
 * A delivery is found by its lane, by its id, or in the list of its hook. Which index a statement takes must not depend on how many deliveries
 * there were when it was planned: two that begin with the hook look the same while there are few, and by the wrong one it later reads all
 * deliveries of a hook to find one. So each has a condition that every row meets, but that only the statements it is meant for can prove:
 * those that compare versions, and those that list, which compare the time of creation.
 */
export const deliveriesById: Migration = {
  name: '0023-deliveries-by-id',
  up: (knex) =>
    knex.raw(`
ALTER TABLE deliveries DROP CONSTRAINT deliveries_pkey, DROP CONSTRAINT deliveries_lane, ADD PRIMARY KEY (id);
CREATE UNIQUE INDEX deliveries_lane ON deliveries (hook_id, entity_kind, entity_id, version) WHERE version IS NOT NULL;
CREATE INDEX deliveries_by_hook ON deliveries (hook_id, id) WHERE created_at IS NOT NULL;
`),
}
