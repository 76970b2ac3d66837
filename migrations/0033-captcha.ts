import type { Migration } from '../platform/database/database.ts'

/** What keeps machines from signing in: solutions are used once, and failures of many accounts at once are noticed. */
export const captcha: Migration = {
  name: '0033-captcha',
  up: (knex) =>
    knex.raw(`
-- Challenges that were solved, by their digests.
CREATE TABLE captcha_solutions (
  digest     bytea       PRIMARY KEY,
  expires_at timestamptz NOT NULL
);
CREATE INDEX captcha_solutions_by_expiry ON captcha_solutions (expires_at);

-- Identifiers with which a sign-in failed and did not succeed since. The key is an HMAC.
CREATE TABLE failing_identifiers (
  key       bytea       PRIMARY KEY,
  failed_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX failing_identifiers_by_time ON failing_identifiers (failed_at);
`),
}
