import type { Migration } from '../platform/database/database.ts'

/**
 * What no longer counts although its signature holds. Readers follow by number: see
 * `issuer/tokens/revocations/revocation-store.ts`.
 */
export const revocations: Migration = {
  name: '0004-revocations',
  up: (knex) =>
    knex.raw(`
-- Numbers are taken under one advisory lock that is held until commit, so they become visible in their order.
CREATE SEQUENCE revocation_numbers;
CREATE TABLE revocations (
  seq           bigint       PRIMARY KEY,
  kind          text         NOT NULL CHECK (kind IN ('jti', 'sid', 'sub', 'client')),
  value         varchar(256) NOT NULL,
  -- Only tokens issued until then. NULL: all that carry the value.
  issued_before timestamptz,
  -- No token that this concerns lives longer.
  expires_at    timestamptz  NOT NULL,
  created_at    timestamptz  NOT NULL DEFAULT now(),
  CONSTRAINT revocations_issued_before CHECK ((issued_before IS NOT NULL) = (kind IN ('sub', 'client')))
);
ALTER SEQUENCE revocation_numbers OWNED BY revocations.seq;
CREATE INDEX revocations_by_value ON revocations (value, kind);
-- One token or session is revoked once, however often it is asked for.
CREATE UNIQUE INDEX revocations_once ON revocations (kind, value) WHERE issued_before IS NULL;
CREATE INDEX revocations_by_expiry ON revocations (expires_at);

-- All tokens of a client end with it.
CREATE INDEX opaque_tokens_by_client ON opaque_tokens (client_id);
`),
}
