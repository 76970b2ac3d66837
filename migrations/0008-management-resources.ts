import type { Migration } from '../platform/database/database.ts'

/**
 * Tells the resources that starts made for the Management API from those that callers registered under the same
 * indicator.
 */
export const managementResources: Migration = {
  name: '0008-management-resources',
  up: (knex) =>
    knex.raw(`
ALTER TABLE resources ADD COLUMN is_management boolean NOT NULL DEFAULT false;
UPDATE resources SET is_management = true WHERE id IN (
  SELECT scopes.resource_id FROM scopes
  JOIN role_scopes ON role_scopes.scope_id = scopes.id JOIN roles ON roles.id = role_scopes.role_id
  WHERE scopes.name = 'all' AND roles.name = 'Management API access');
`),
}
