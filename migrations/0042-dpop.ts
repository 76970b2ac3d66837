import type { Migration } from '../platform/database/database.ts'

/**
 * Tokens that are bound to a key of their client (RFC 9449). An issuer of the version before reads these rows and does
 * not look at the new columns.
 */
export const dpop: Migration = {
  name: '0042-dpop',
  up: (knex) =>
    knex.raw(`
-- Proofs that were used, until they are too old for everybody: none is accepted twice. Digest of key and jti.
CREATE TABLE dpop_proofs (
  digest     bytea       PRIMARY KEY,
  expires_at timestamptz NOT NULL
);
CREATE INDEX dpop_proofs_by_expiry ON dpop_proofs (expires_at);

-- Thumbprints (RFC 7638) of the keys that these are bound to; NULL: whoever has one may use it.
ALTER TABLE authorization_codes ADD COLUMN jkt text;
ALTER TABLE refresh_tokens ADD COLUMN jkt text;
ALTER TABLE opaque_tokens ADD COLUMN jkt text;
`),
}
