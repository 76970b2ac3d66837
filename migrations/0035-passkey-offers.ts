import type { Migration } from '../platform/database/database.ts'

/** When people last said that they do not want a passkey now. */
export const passkeyOffers: Migration = {
  name: '0035-passkey-offers',
  up: (knex) => knex.raw('ALTER TABLE users ADD COLUMN passkey_skipped_at timestamptz'),
}
