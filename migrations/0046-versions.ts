import type { Migration } from '../platform/database/database.ts'

/**
 * Versions for what has no events: applications, resources, hooks, connectors and settings. By triggers, because an
 * issuer of the version before changes them too, and relays disable hooks. Audit rows are found by session, and more is
 * searched.
 */
export const versions: Migration = {
  name: '0046-versions',
  up: (knex) =>
    knex.raw(`
CREATE FUNCTION next_version() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  INSERT INTO entity_versions AS known (kind, id, version)
  VALUES (TG_ARGV[0], to_jsonb(coalesce(NEW, OLD)) ->> TG_ARGV[1], 1)
  ON CONFLICT (kind, id) DO UPDATE SET version = known.version + 1;
  RETURN NULL;
END $body$;

CREATE TRIGGER applications_version AFTER INSERT OR UPDATE ON applications
  FOR EACH ROW EXECUTE FUNCTION next_version('application', 'id');
CREATE TRIGGER application_sign_in_experiences_version AFTER INSERT OR UPDATE ON application_sign_in_experiences
  FOR EACH ROW EXECUTE FUNCTION next_version('application-sign-in-experience', 'application_id');
CREATE TRIGGER resources_version AFTER INSERT OR UPDATE ON resources
  FOR EACH ROW EXECUTE FUNCTION next_version('resource', 'id');
CREATE TRIGGER settings_version AFTER INSERT OR UPDATE ON settings
  FOR EACH ROW EXECUTE FUNCTION next_version('setting', 'name');
CREATE TRIGGER claims_scripts_version AFTER INSERT OR UPDATE OR DELETE ON claims_scripts
  FOR EACH ROW EXECUTE FUNCTION next_version('claims-script', 'token_type');
CREATE TRIGGER connectors_version AFTER INSERT OR UPDATE ON connectors
  FOR EACH ROW EXECUTE FUNCTION next_version('connector', 'id');
CREATE TRIGGER identity_providers_version AFTER INSERT OR UPDATE ON identity_providers
  FOR EACH ROW EXECUTE FUNCTION next_version('connector', 'id');
-- Not the health that relays write.
CREATE TRIGGER hooks_version
  AFTER INSERT OR UPDATE OF name, events, event, url, sealed_headers, retries, rate_limit, organization_ids, enabled ON hooks
  FOR EACH ROW EXECUTE FUNCTION next_version('hook', 'id');
CREATE TRIGGER hook_signing_keys_version AFTER INSERT ON hook_signing_keys
  FOR EACH ROW EXECUTE FUNCTION next_version('hook', 'hook_id');

-- The session because of which an API made the change. An issuer of the version before writes none.
ALTER TABLE logs ADD COLUMN session_id varchar(21);
CREATE INDEX logs_by_session ON logs (session_id, created_at DESC, id) WHERE session_id IS NOT NULL;

-- What was searched by nothing so far.
CREATE INDEX resources_search ON resources USING gin (name gin_trgm_ops, indicator gin_trgm_ops, id gin_trgm_ops);
CREATE INDEX hooks_search ON hooks USING gin (name gin_trgm_ops, url gin_trgm_ops, id gin_trgm_ops);
`),
}
