import type { Migration } from '../platform/database/database.ts'

/**
 * `died_at` says that a delivery was given up, and stays when its dead letter is purged. So the index of these tells at
 * once whether a hook may have gaps at all (`Surrogate-Gap`).
 */
export const givenUp: Migration = {
  name: '0024-given-up',
  up: (knex) =>
    knex.raw(
      `UPDATE deliveries SET died_at = coalesce(finished_at, now()) WHERE state = 'cancelled' AND died_at IS NULL AND NOT test`,
    ),
}
