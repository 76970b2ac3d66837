import type { Migration } from '../platform/database/database.ts'

/**
 * A delivery is found by its lane, by its id, or in the list of its hook. Which index a statement takes must not depend
 * on how many deliveries there were when it was planned: two that begin with the hook look the same while there are
 * few, and by the wrong one it later reads all deliveries of a hook to find one. So each has a condition that every row
 * meets, but that only the statements it is meant for can prove: those that compare versions, and those that list,
 * which compare the time of creation.
 */
export const deliveriesById: Migration = {
  name: '0023-deliveries-by-id',
  up: (knex) =>
    knex.raw(`
ALTER TABLE deliveries DROP CONSTRAINT deliveries_pkey, DROP CONSTRAINT deliveries_lane, ADD PRIMARY KEY (id);
CREATE UNIQUE INDEX deliveries_lane ON deliveries (hook_id, entity_kind, entity_id, version) WHERE version IS NOT NULL;
CREATE INDEX deliveries_by_hook ON deliveries (hook_id, id) WHERE created_at IS NOT NULL;

-- Every open delivery has a lane that reaches down to it. ORDER BY and OFFSET: one look-up for each lane, by the index of lanes, whatever the
-- planner thinks of how many there are. The columns of a lane are its own, so that a filter by hook reads the lanes of that hook only.
DROP VIEW open_deliveries;
CREATE VIEW open_deliveries AS
  SELECT lanes.hook_id, lanes.entity_kind, lanes.entity_id, delivery.*
  FROM lanes CROSS JOIN LATERAL (
    SELECT id, event_id, version, created_at FROM deliveries
    WHERE deliveries.hook_id = lanes.hook_id AND deliveries.entity_kind = lanes.entity_kind
      AND deliveries.entity_id = lanes.entity_id AND deliveries.version >= lanes.from_version
      AND deliveries.finished_at IS NULL
    ORDER BY version OFFSET 0) AS delivery;
`),
}
