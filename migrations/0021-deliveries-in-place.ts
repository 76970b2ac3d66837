import type { Migration } from '../platform/database/database.ts'

/**
 * A delivery that succeeds is changed in place (a heap-only update): no index tells open deliveries from others any
 * more. They are found by their lane, which says from which version on to look; and a lane is leased without moving in
 * an index.
 */
export const deliveriesInPlace: Migration = {
  name: '0021-deliveries-in-place',
  up: (knex) =>
    knex.raw(`
ALTER TABLE lanes
  -- No open delivery of the lane is below it.
  ADD COLUMN from_version bigint NOT NULL DEFAULT 0,
  -- With leased_by: others may claim the lane after that. While nobody has it, ready_at says when it is due.
  ADD COLUMN leased_until timestamptz;
UPDATE lanes SET leased_until = ready_at WHERE leased_by IS NOT NULL;
-- For claims only: who looks for one lane of a hook would read all of them by it while the planner believes that they are few.
DROP INDEX lanes_due;
CREATE INDEX lanes_due ON lanes (hook_id, ready_at) WHERE NOT test;

-- Only when a delivery is given up; then it is a dead letter until it is opened anew or purged.
ALTER TABLE deliveries ADD COLUMN died_at timestamptz;
UPDATE deliveries SET died_at = coalesce(finished_at, now()) WHERE state = 'dead';
DROP INDEX deliveries_open, deliveries_dead;
CREATE INDEX deliveries_dead ON deliveries (hook_id, id) WHERE died_at IS NOT NULL;

-- An id is looked for with its hook, whose deliveries are also listed in this order. Room on each page for a second version of its rows.
ALTER TABLE deliveries DROP CONSTRAINT deliveries_pkey, ADD PRIMARY KEY (hook_id, id), SET (fillfactor = 50);
DROP INDEX deliveries_by_hook;

-- Every open delivery has a lane that reaches down to it.
CREATE VIEW open_deliveries AS
  SELECT deliveries.* FROM lanes JOIN deliveries ON deliveries.hook_id = lanes.hook_id
    AND deliveries.entity_kind = lanes.entity_kind AND deliveries.entity_id = lanes.entity_id
  WHERE deliveries.version >= lanes.from_version AND deliveries.finished_at IS NULL;

-- Only ever shown as a whole.
ALTER TABLE delivery_attempts ALTER COLUMN request_headers TYPE json, ALTER COLUMN response_headers TYPE json;

ALTER TABLE test_targets ADD COLUMN hook_id varchar(21);
UPDATE test_targets SET hook_id = deliveries.hook_id FROM deliveries WHERE deliveries.id = test_targets.delivery_id;
DELETE FROM test_targets WHERE hook_id IS NULL;
ALTER TABLE test_targets ALTER COLUMN hook_id SET NOT NULL;
`),
}
