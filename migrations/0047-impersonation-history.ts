import type { Migration } from '../platform/database/database.ts'

/**
 * How a session of impersonation came about: who asked for its subject token, and what the policy said both times. An
 * issuer of the version before writes neither, and what it opens says so by having none.
 */
export const impersonationHistory: Migration = {
  name: '0047-impersonation-history',
  up: (knex) =>
    knex.raw(`
-- When, by whom in the console, and what the policy said then; JSON. The session takes it over.
ALTER TABLE subject_tokens ADD COLUMN minted jsonb;
ALTER TABLE impersonation_sessions
  ADD COLUMN minted jsonb,
  -- What the policy said at the exchange.
  ADD COLUMN policy jsonb;
`),
}
