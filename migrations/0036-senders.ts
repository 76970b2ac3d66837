import type { Migration } from '../platform/database/database.ts'

/** Connectors are kept in memory with the settings of signing in (0031): a change of one is told like theirs. */
export const senders: Migration = {
  name: '0036-senders',
  up: (knex) =>
    knex.raw(`
CREATE TRIGGER settings_changed AFTER INSERT OR UPDATE OR DELETE ON connectors
  FOR EACH ROW EXECUTE FUNCTION settings_changed();
`),
}
