import type { Migration } from '../platform/database/database.ts'

/**
 * `event` is how existing clients named the only event of a hook before there was `events`. It is kept to be answered;
 * what a hook listens to stays in `events`, which issuers and relays of older versions read and write too.
 */
export const hookEvent: Migration = {
  name: '0025-hook-event',
  up: (knex) => knex.raw('ALTER TABLE hooks ADD COLUMN event text'),
}
