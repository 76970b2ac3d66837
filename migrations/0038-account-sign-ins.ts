import type { Migration } from '../platform/database/database.ts'

/**
 * A person signs in to their account pages: no application asks, so the interaction has none. An issuer of the version
 * before finds no such row, and shows its page for sign-ins that it does not know.
 */
export const accountSignIns: Migration = {
  name: '0038-account-sign-ins',
  up: (knex) => knex.raw('ALTER TABLE interactions ALTER COLUMN client_id DROP NOT NULL'),
}
