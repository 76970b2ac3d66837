import type { Migration } from '../platform/database/database.ts'

/**
 * People look after their own accounts: what they prove for that belongs to no interaction. Issuers of the version
 * before find proofs by their interaction only, so they see none of these.
 */
export const account: Migration = {
  name: '0037-account',
  up: (knex) =>
    knex.raw(`
-- Of proofs without an interaction: the authorization, or the session, in which the person gave them.
ALTER TABLE proofs ADD COLUMN holder varchar(21);
CREATE INDEX proofs_by_holder ON proofs (holder) WHERE holder IS NOT NULL;

-- It came of an exchange: whoever has it need not be whom the person signed in for.
ALTER TABLE opaque_tokens ADD COLUMN is_exchanged boolean NOT NULL DEFAULT false;
`),
}
