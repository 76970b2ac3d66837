import type { Migration } from '../platform/database/database.ts'

/** People are asked before others act as them, and see, limit and end it. Sessions know of which sign-in they came. */
export const impersonationRequests: Migration = {
  name: '0044-impersonation-requests',
  up: (knex) =>
    knex.raw(`
-- Somebody asks to act as a person, who is to agree first.
CREATE TABLE impersonation_requests (
  id         varchar(21)   PRIMARY KEY,
  user_id    varchar(12)   NOT NULL REFERENCES users ON DELETE CASCADE,
  -- The application that asked, and may use the approval.
  creator_id varchar(21)   NOT NULL,
  -- What it asked for, as columns of subject_tokens.
  context    jsonb         NOT NULL,
  client_id  varchar(21),
  resource   varchar(2048),
  scopes     text[],
  actor_id   varchar(12),
  reason     varchar(1024),
  ticket     varchar(256),
  -- What the actor's token said, for the policy.
  actor      jsonb,
  number     varchar(8)    NOT NULL,
  created_at timestamptz   NOT NULL DEFAULT now(),
  -- Until then it may be decided, and from then on as long again be used.
  expires_at timestamptz   NOT NULL,
  decision   varchar(16)   CHECK (decision IN ('approved', 'refused')),
  decided_at timestamptz,
  read_only  boolean       NOT NULL DEFAULT false,
  -- In seconds.
  max_ttl    integer,
  -- When its subject token was minted: once.
  used_at    timestamptz,
  CHECK ((decision IS NULL) = (decided_at IS NULL)),
  CHECK (used_at IS NULL OR decision = 'approved')
);
CREATE INDEX impersonation_requests_by_user ON impersonation_requests (user_id, created_at DESC);
CREATE INDEX impersonation_requests_by_expiry ON impersonation_requests (expires_at);

-- The approval with its limits. Issuers that do not know limits cannot use such a token up, and so cannot exchange it.
ALTER TABLE subject_tokens
  ADD COLUMN approval jsonb,
  ADD COLUMN keeps_limits boolean NOT NULL DEFAULT false,
  ADD CONSTRAINT subject_tokens_limits CHECK (approval IS NULL OR consumed_at IS NULL OR keeps_limits);

ALTER TABLE impersonation_sessions
  -- The authorization that the actor's token came of.
  ADD COLUMN actor_sid varchar(21),
  ADD COLUMN ends_with_actor boolean NOT NULL DEFAULT false,
  ADD COLUMN approval_id varchar(21),
  -- 'read': its token only reads.
  ADD COLUMN access varchar(8) CHECK (access = 'read');
CREATE INDEX impersonation_sessions_by_actor_sid ON impersonation_sessions (actor_sid) WHERE ends_with_actor AND ended_at IS NULL;

ALTER TABLE opaque_tokens ADD COLUMN access varchar(8) CHECK (access = 'read');
`),
}
