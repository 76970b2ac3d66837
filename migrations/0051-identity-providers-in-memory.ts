import type { Migration } from '../platform/database/database.ts'

/**
 * Connectors of identity providers are kept in memory with the settings of signing in (0031): a change of one is told
 * like theirs. Their domains change together with them.
 */
export const identityProvidersInMemory: Migration = {
  name: '0051-identity-providers-in-memory',
  up: (knex) =>
    knex.raw(`
CREATE TRIGGER settings_changed AFTER INSERT OR UPDATE OR DELETE ON identity_providers
  FOR EACH ROW EXECUTE FUNCTION settings_changed();
`),
}
