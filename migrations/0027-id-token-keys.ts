import type { Migration } from '../platform/database/database.ts'

/**
 * A second chain of keys, which signs ID tokens of clients that ask for RS256. A table of its own, because issuers of
 * an older version run beside this one: they sign with whatever is active in `signing_keys`, and would retire it.
 */
export const idTokenKeys: Migration = {
  name: '0027-id-token-keys',
  up: (knex) =>
    knex.raw(`
CREATE TABLE id_token_keys (LIKE signing_keys INCLUDING ALL);
-- Of the first key: when verifiers have had the time to learn of it.
COMMENT ON COLUMN id_token_keys.activated_at IS 'from when on discovery lists its algorithm';
`),
}
