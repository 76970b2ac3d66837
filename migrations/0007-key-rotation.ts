import type { Migration } from '../platform/database/database.ts'

/** What a staged rotation of signing keys needs to know; see `issuer/tokens/keys`. */
export const keyRotation: Migration = {
  name: '0007-key-rotation',
  up: (knex) =>
    knex.raw(`
-- Of a key that is next: when it is planned to sign. Of the others: when it began to.
COMMENT ON COLUMN signing_keys.activated_at IS 'from when on it signs';
-- In seconds: no token that it signed lives longer. Raised while it is active, so that a resource that gets a shorter life or is
-- deleted does not shorten how long its tokens can be verified.
ALTER TABLE signing_keys ADD COLUMN token_life integer NOT NULL DEFAULT 3600;
-- A key that stopped signing has no private part any more.
ALTER TABLE signing_keys ALTER COLUMN private_jwk DROP NOT NULL;
ALTER TABLE signing_keys ADD CONSTRAINT signing_keys_private CHECK (private_jwk IS NOT NULL OR state = 'retiring');
CREATE UNIQUE INDEX signing_keys_one_next ON signing_keys (state) WHERE state = 'next';
`),
}
