import type { Migration } from '../platform/database/database.ts'

/**
 * An unknown resource is answered with the registered one that differs only by case, port or final slash; finding it
 * must not read them all.
 */
export const indicatorHints: Migration = {
  name: '0011-indicator-hints',
  up: (knex) => knex.raw(`CREATE INDEX resources_by_lower_indicator ON resources (lower(indicator))`),
}
