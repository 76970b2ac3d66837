import type { Migration } from '../platform/database/database.ts'

/**
 * How receivers fare, shared by all relays: consecutive failures and the circuit breaker, the rate limit, the catching
 * up after an absence; and which relays are alive, so that what a dead one held is taken over within seconds.
 */
export const deliveryHealth: Migration = {
  name: '0016-delivery-health',
  up: (knex) =>
    knex.raw(`
ALTER TABLE hooks
  -- POSTs a minute, over all relays; NULL: no limit. Set with the hook.
  ADD COLUMN rate_limit     integer CHECK (rate_limit BETWEEN 1 AND 600000),
  -- The rest is the relays'. Slots before this time are used up.
  ADD COLUMN slots_from     timestamptz,
  -- Enabled again after an absence: what was held is sent at a measured pace until nothing is overdue.
  ADD COLUMN catching_up    boolean NOT NULL DEFAULT false,
  -- Failures since the last success, which is when failing_since is NULL.
  ADD COLUMN failures       integer NOT NULL DEFAULT 0,
  -- The lane of the first of them, and whether others failed too.
  ADD COLUMN failing_lane   text,
  ADD COLUMN failing_widely boolean NOT NULL DEFAULT false,
  -- The circuit breaker: open since then, next POST not before, POSTs sent while open.
  ADD COLUMN open_since     timestamptz,
  ADD COLUMN probe_at       timestamptz,
  ADD COLUMN probes         integer NOT NULL DEFAULT 0,
  -- Its lanes are claimed one POST at a time.
  ADD COLUMN gated          boolean NOT NULL GENERATED ALWAYS AS
    (rate_limit IS NOT NULL OR catching_up OR open_since IS NOT NULL) STORED;
CREATE INDEX hooks_gated ON hooks (id) WHERE gated;

-- Whoever changes or enables a hook wants it tried again, so what was noted of its failures begins anew. Relays do not write these columns
-- but to disable.
CREATE FUNCTION hook_revised() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  NEW.paused_until := NULL;
  NEW.failing_since := NULL;
  NEW.failures := 0;
  NEW.failing_lane := NULL;
  NEW.failing_widely := false;
  NEW.open_since := NULL;
  NEW.probe_at := NULL;
  NEW.probes := 0;
  NEW.catching_up := NEW.catching_up OR NOT OLD.enabled;
  RETURN NEW;
END $body$;
CREATE TRIGGER hook_revised BEFORE UPDATE OF url, enabled ON hooks
  FOR EACH ROW WHEN (NEW.enabled) EXECUTE FUNCTION hook_revised();

-- Relays that run. One that has not said so in time is gone, and knows it: its lanes go to the others.
CREATE TABLE relays (
  id          uuid        PRIMARY KEY,
  started_at  timestamptz NOT NULL DEFAULT now(),
  alive_until timestamptz NOT NULL
);

-- A lane of its own for each test-send: claimed at once, whatever the state of its hook, and tried once.
ALTER TABLE lanes ADD COLUMN test boolean NOT NULL DEFAULT false;
CREATE INDEX lanes_of_tests ON lanes (ready_at) WHERE test;

CREATE INDEX deliveries_dead ON deliveries (hook_id, id) WHERE state = 'dead';
`),
}
