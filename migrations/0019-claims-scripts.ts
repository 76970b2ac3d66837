import type { Migration } from '../platform/database/database.ts'

/**
 * The scripts that add custom claims to access tokens: one for users' tokens, one for those of machine-to-machine
 * applications.
 */
export const claimsScripts: Migration = {
  name: '0019-claims-scripts',
  up: (knex) =>
    knex.raw(`
CREATE TABLE claims_scripts (
  token_type              text        PRIMARY KEY CHECK (token_type IN ('access-token', 'client-credentials')),
  -- Another one with every change: instances keep what they read of a script for as long as this is the same.
  version                 varchar(21) NOT NULL,
  script                  text        NOT NULL,
  -- Environment variables as JSON.
  sealed_environment      bytea,
  block_issuance_on_error boolean     NOT NULL DEFAULT true,
  token_sample            jsonb,
  context_sample          jsonb,
  created_at              timestamptz NOT NULL DEFAULT now(),
  updated_at              timestamptz NOT NULL DEFAULT now()
);
`),
}
