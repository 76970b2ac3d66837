import type { Migration } from '../platform/database/database.ts'

/**
 * Fills what 0048 made, and locks nothing: what somebody writes meanwhile is there already, and newer. Who changes a
 * name waits for the end.
 */
export const userSearchCopy: Migration = {
  name: '0049-user-search-copy',
  up: (knex) =>
    knex.raw(`
INSERT INTO new_user_search SELECT id, created_at, user_search_body(users) FROM users ON CONFLICT DO NOTHING;
ANALYZE new_user_search;
`),
}
