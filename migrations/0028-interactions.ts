import type { Migration } from '../platform/database/database.ts'

/** Signing in with more than a password: registration, recovery, codes and second factors. */
export const interactions: Migration = {
  name: '0028-interactions',
  up: (knex) =>
    knex.raw(`
-- What becomes of the person when it finishes: identifiers that need no proof, the digest of a new password, a profile.
ALTER TABLE interactions ADD COLUMN staged jsonb NOT NULL DEFAULT '{}';
CREATE INDEX interactions_by_client ON interactions (client_id);
CREATE INDEX interactions_by_user ON interactions (user_id) WHERE user_id IS NOT NULL;

ALTER TABLE proofs
  -- The HMAC of a code that was sent; erased when it is verified.
  ADD COLUMN secret bytea,
  -- Answers that were held against it.
  ADD COLUMN tries smallint NOT NULL DEFAULT 0;
CREATE INDEX proofs_by_user ON proofs (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX pushed_requests_by_client ON pushed_requests (client_id) WHERE client_id IS NOT NULL;

-- When the person was asked to add a second factor and put it off.
ALTER TABLE users ADD COLUMN mfa_skipped_at timestamptz;
`),
}
