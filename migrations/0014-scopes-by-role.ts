import type { Migration } from '../platform/database/database.ts'

/** Whether one of somebody's roles carries a scope is looked up in the index alone, at every token. */
export const scopesByRole: Migration = {
  name: '0014-scopes-by-role',
  up: (knex) =>
    knex.raw(`
DROP INDEX role_scopes_by_scope;
CREATE INDEX role_scopes_by_scope ON role_scopes (scope_id, role_id);
`),
}
