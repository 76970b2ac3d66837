import type { Migration } from '../platform/database/database.ts'

/**
 * People sign in: sessions, authorizations with their codes and refresh tokens, consents, and what signing in keeps
 * while it is under way. Values that open something stand here as digests.
 */
export const signIn: Migration = {
  name: '0026-sign-in',
  up: (knex) =>
    knex.raw(`
-- When the address was last known to be the user's. Those there are, and those that an issuer of an older version
-- writes, come from the Management API, whose caller answers for them.
ALTER TABLE users
  ADD COLUMN email_verified_at timestamptz DEFAULT now(),
  ADD COLUMN phone_verified_at timestamptz DEFAULT now();

-- A browser in which a person has signed in.
CREATE TABLE sessions (
  id               varchar(21) PRIMARY KEY,
  -- Of the cookie's value.
  digest           bytea       NOT NULL CONSTRAINT sessions_digest UNIQUE,
  -- The value before the last rotation, good for a moment more.
  previous_digest  bytea       CONSTRAINT sessions_previous_digest UNIQUE,
  previous_until   timestamptz,
  user_id          varchar(12) NOT NULL REFERENCES users ON DELETE CASCADE,
  -- "Keep me signed in": the cookie outlives the browser.
  is_persistent    boolean     NOT NULL,
  -- The claim auth_time.
  authenticated_at timestamptz NOT NULL,
  amr              text[]      NOT NULL,
  acr              text        NOT NULL,
  -- How the person signed in, as custom claims scripts are told.
  interaction      jsonb       NOT NULL,
  first_address    text        NOT NULL,
  last_address     text        NOT NULL,
  user_agent       text,
  created_at       timestamptz NOT NULL DEFAULT now(),
  rotated_at       timestamptz NOT NULL DEFAULT now(),
  last_seen_at     timestamptz NOT NULL DEFAULT now(),
  -- In seconds.
  idle_ttl         integer     NOT NULL CHECK (idle_ttl > 0),
  expires_at       timestamptz NOT NULL,
  ended_at         timestamptz,
  end_reason       text,
  ended_by         text
);
CREATE INDEX sessions_by_user ON sessions (user_id, created_at DESC);
CREATE INDEX sessions_by_end ON sessions ((coalesce(ended_at, expires_at)));
CREATE INDEX sessions_by_expiry ON sessions (expires_at) WHERE ended_at IS NULL;
-- What is due to expire is found by these.
CREATE INDEX sessions_by_last_seen ON sessions (last_seen_at) WHERE ended_at IS NULL;
CREATE INDEX sessions_by_idle_ttl ON sessions (idle_ttl) WHERE ended_at IS NULL;

-- A completed authorization request: session × client. Its id is the claim sid. No foreign key to the session: an
-- authorization with offline access outlives it.
CREATE TABLE authorizations (
  id               varchar(21)   PRIMARY KEY CHECK (id LIKE 'ps\\_%'),
  session_id       varchar(21)   NOT NULL,
  user_id          varchar(12)   NOT NULL REFERENCES users ON DELETE CASCADE,
  client_id        varchar(21)   NOT NULL REFERENCES applications ON DELETE CASCADE,
  -- Granted, in the order of the request.
  scopes           text[]        NOT NULL,
  -- Indicators.
  resources        text[]        NOT NULL,
  organization_id  varchar(21),
  is_offline       boolean       NOT NULL,
  authenticated_at timestamptz   NOT NULL,
  amr              text[]        NOT NULL,
  acr              text          NOT NULL,
  interaction      jsonb         NOT NULL,
  created_at       timestamptz   NOT NULL DEFAULT now(),
  -- When no refresh token of it can be good any more; without one, when its session ends at the latest.
  expires_at       timestamptz   NOT NULL,
  ended_at         timestamptz,
  end_reason       text
);
CREATE INDEX authorizations_by_session ON authorizations (session_id);
CREATE INDEX authorizations_by_user ON authorizations (user_id, created_at DESC);
CREATE INDEX authorizations_by_client ON authorizations (client_id);
CREATE INDEX authorizations_by_end ON authorizations ((coalesce(ended_at, expires_at)));

CREATE TABLE authorization_codes (
  digest           bytea        PRIMARY KEY,
  authorization_id varchar(21)  NOT NULL CONSTRAINT authorization_codes_once UNIQUE REFERENCES authorizations ON DELETE CASCADE,
  client_id        varchar(21)  NOT NULL,
  redirect_uri     text         NOT NULL,
  -- S256.
  code_challenge   text,
  nonce            text,
  wrong_verifiers  smallint     NOT NULL DEFAULT 0,
  created_at       timestamptz  NOT NULL DEFAULT now(),
  expires_at       timestamptz  NOT NULL,
  redeemed_at      timestamptz
);

CREATE TABLE refresh_tokens (
  digest           bytea        PRIMARY KEY,
  authorization_id varchar(21)  NOT NULL REFERENCES authorizations ON DELETE CASCADE,
  created_at       timestamptz  NOT NULL DEFAULT now(),
  expires_at       timestamptz  NOT NULL,
  -- When the next one took its place.
  rotated_at       timestamptz,
  -- The next one, encrypted with a key that only the holder of this one can make; erased when the leeway ends.
  successor        bytea,
  -- Given up by its client.
  revoked_at       timestamptz
);
CREATE INDEX refresh_tokens_by_authorization ON refresh_tokens (authorization_id);
CREATE INDEX refresh_tokens_by_expiry ON refresh_tokens (expires_at);
CREATE INDEX refresh_tokens_by_rotation ON refresh_tokens (rotated_at) WHERE successor IS NOT NULL;

-- What a person allowed a third-party application.
CREATE TABLE consents (
  id            varchar(21) PRIMARY KEY,
  user_id       varchar(12) NOT NULL REFERENCES users ON DELETE CASCADE,
  client_id     varchar(21) NOT NULL REFERENCES applications ON DELETE CASCADE,
  -- Those of no resource.
  scopes        text[]      NOT NULL,
  -- Scopes by indicator.
  resources     jsonb       NOT NULL DEFAULT '{}',
  organizations text[]      NOT NULL DEFAULT '{}',
  granted_at    timestamptz NOT NULL DEFAULT now(),
  expires_at    timestamptz NOT NULL,
  revoked_at    timestamptz,
  CONSTRAINT consents_once UNIQUE (user_id, client_id)
);
CREATE INDEX consents_by_end ON consents ((coalesce(revoked_at, expires_at)));

-- An authorization request that waits for a person. Its id stands in the URL of the pages.
CREATE TABLE interactions (
  id             varchar(21) PRIMARY KEY,
  -- Digest of the cookie of the one browser that it belongs to.
  browser        bytea       NOT NULL,
  address        text        NOT NULL,
  client_id      varchar(21) NOT NULL REFERENCES applications ON DELETE CASCADE,
  -- The checked request.
  request        jsonb       NOT NULL,
  event          text        NOT NULL DEFAULT 'SignIn',
  -- Who it is, once that is proven here, or who confirmed the session there is.
  user_id        varchar(12) REFERENCES users ON DELETE CASCADE,
  -- What the person decided so far.
  state          jsonb       NOT NULL DEFAULT '{}',
  created_at     timestamptz NOT NULL DEFAULT now(),
  expires_at     timestamptz NOT NULL,
  finished_at    timestamptz,
  -- Where it led, encrypted with a key that only the browser can make; erased after some seconds.
  redirect       bytea
);
CREATE INDEX interactions_by_address ON interactions (address) WHERE finished_at IS NULL;
CREATE INDEX interactions_by_browser ON interactions (browser);
CREATE INDEX interactions_by_expiry ON interactions (expires_at);
-- Those whose redirect is to be erased.
CREATE INDEX interactions_by_redirect ON interactions (finished_at) WHERE redirect IS NOT NULL;

-- What a person proved, for one purpose, to be used once.
CREATE TABLE proofs (
  id             varchar(21) PRIMARY KEY,
  interaction_id varchar(21) REFERENCES interactions ON DELETE CASCADE,
  user_id        varchar(12) REFERENCES users ON DELETE CASCADE,
  kind           text        NOT NULL,
  purpose        text        NOT NULL,
  data           jsonb       NOT NULL DEFAULT '{}',
  created_at     timestamptz NOT NULL DEFAULT now(),
  verified_at    timestamptz,
  consumed_at    timestamptz,
  expires_at     timestamptz NOT NULL
);
CREATE INDEX proofs_by_interaction ON proofs (interaction_id);
CREATE INDEX proofs_by_expiry ON proofs (expires_at);

-- Failures to sign in. The key is an HMAC of what is counted: an account, a device of one, an address.
CREATE TABLE sign_in_failures (
  key          bytea       PRIMARY KEY,
  count        integer     NOT NULL,
  since        timestamptz NOT NULL,
  -- How often it was locked; each time for longer.
  locks        integer     NOT NULL DEFAULT 0,
  locked_until timestamptz,
  updated_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX sign_in_failures_by_update ON sign_in_failures (updated_at);

-- A browser in which this person has signed in before.
CREATE TABLE known_devices (
  digest       bytea       NOT NULL,
  user_id      varchar(12) NOT NULL REFERENCES users ON DELETE CASCADE,
  created_at   timestamptz NOT NULL DEFAULT now(),
  last_used_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (digest, user_id)
);
CREATE INDEX known_devices_by_user ON known_devices (user_id);
CREATE INDEX known_devices_by_use ON known_devices (last_used_at);

-- Authorization requests that were sent ahead (RFC 9126), or by POST from another site.
CREATE TABLE pushed_requests (
  digest     bytea       PRIMARY KEY,
  kind       text        NOT NULL CHECK (kind IN ('pushed', 'posted')),
  -- Of a pushed one: the client that proved itself.
  client_id  varchar(21) REFERENCES applications ON DELETE CASCADE,
  parameters jsonb       NOT NULL,
  -- Digest of the cookie of the browser that used it first.
  browser    bytea,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  used_at    timestamptz
);
CREATE INDEX pushed_requests_by_expiry ON pushed_requests (expires_at);

-- Random keys for HMACs, sealed under the key-encryption key.
CREATE TABLE hmac_keys (
  purpose    text        PRIMARY KEY,
  sealed     bytea       NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- What the Management API sets for the whole issuer.
CREATE TABLE settings (
  name       text        PRIMARY KEY,
  value      jsonb       NOT NULL,
  updated_at timestamptz NOT NULL DEFAULT now()
);
`),
}
