import type { Migration } from '../platform/database/database.ts'

/** Identity providers, and who users are there. */
export const identityProviders: Migration = {
  name: '0039-identity-providers',
  up: (knex) =>
    knex.raw(`
CREATE TABLE identity_providers (
  id            varchar(21)  PRIMARY KEY,
  kind          text         NOT NULL CHECK (kind IN ('social', 'sso')),
  -- A row of the table of factories, or of enterprise providers.
  provider      text         NOT NULL,
  -- Of an enterprise connector.
  name          varchar(128) CHECK ((name IS NULL) = (kind = 'social')),
  -- How identities name a social one: a member of users.identities.
  target        varchar(128) CHECK ((target IS NULL) = (kind = 'sso')),
  sealed_config bytea        NOT NULL,
  sync_profile  boolean      NOT NULL DEFAULT false,
  -- What pages show: metadata of a social one, branding of an enterprise's.
  look          jsonb        NOT NULL DEFAULT '{}',
  created_at    timestamptz  NOT NULL DEFAULT now(),
  updated_at    timestamptz  NOT NULL DEFAULT now(),
  CONSTRAINT identity_providers_target UNIQUE (target),
  CONSTRAINT identity_providers_name UNIQUE (name)
);

-- Whose people come by which enterprise connector; in lower case. One domain is one connector's.
CREATE TABLE identity_provider_domains (
  domain      varchar(128) CONSTRAINT identity_provider_domains_once PRIMARY KEY,
  provider_id varchar(21)  NOT NULL REFERENCES identity_providers ON DELETE CASCADE,
  -- In the order of the operator.
  position    integer      NOT NULL
);
CREATE INDEX identity_provider_domains_by_provider ON identity_provider_domains (provider_id);

-- A table of their own: issuers of the version before know no factory of these. Only mock ones can be there.
INSERT INTO identity_providers (id, kind, provider, target, sealed_config, sync_profile, look, created_at, updated_at)
  SELECT DISTINCT ON (connector_id) id, 'social', connector_id, 'mock-social', sealed_config, sync_profile, metadata,
    created_at, updated_at
  FROM connectors WHERE type = 'Social' ORDER BY connector_id, created_at DESC, id;
DELETE FROM connectors WHERE type = 'Social';

-- Requests to providers that the Management API began. What is kept for the answer is sealed.
CREATE TABLE identity_provider_requests (
  provider_id varchar(21) NOT NULL REFERENCES identity_providers ON DELETE CASCADE,
  -- SHA-256.
  state_digest bytea      NOT NULL,
  sealed      bytea       NOT NULL,
  expires_at  timestamptz NOT NULL,
  PRIMARY KEY (provider_id, state_digest)
);
CREATE INDEX identity_provider_requests_by_expiry ON identity_provider_requests (expires_at);

-- One identity is one user's. Kept by a trigger, because issuers of an older version link users too.
CREATE TABLE user_identities (
  target  text        NOT NULL,
  subject text        NOT NULL,
  user_id varchar(12) NOT NULL REFERENCES users ON DELETE CASCADE,
  CONSTRAINT user_identities_once PRIMARY KEY (target, subject)
);
CREATE INDEX user_identities_by_user ON user_identities (user_id);
INSERT INTO user_identities (target, subject, user_id)
  SELECT DISTINCT ON (one.key, one.value ->> 'userId') one.key, one.value ->> 'userId', u.id
  FROM users u, jsonb_each(u.identities) one WHERE one.value ->> 'userId' IS NOT NULL
  ORDER BY one.key, one.value ->> 'userId', u.created_at, u.id;

CREATE FUNCTION keep_user_identities() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  before jsonb := '{}';
BEGIN
  IF TG_OP = 'UPDATE' THEN before := OLD.identities; END IF;
  DELETE FROM user_identities i
    WHERE i.user_id = NEW.id AND i.subject IS DISTINCT FROM NEW.identities -> i.target ->> 'userId';
  -- Only what is new: two users that had the same before are not held up.
  INSERT INTO user_identities (target, subject, user_id)
    SELECT one.key, one.value ->> 'userId', NEW.id FROM jsonb_each(NEW.identities) one
    WHERE one.value ->> 'userId' IS NOT NULL
      AND one.value ->> 'userId' IS DISTINCT FROM before -> one.key ->> 'userId';
  RETURN NULL;
END $body$;
CREATE TRIGGER keep_user_identities_inserted AFTER INSERT ON users
  FOR EACH ROW WHEN (NEW.identities <> '{}') EXECUTE FUNCTION keep_user_identities();
CREATE TRIGGER keep_user_identities_updated AFTER UPDATE OF identities ON users
  FOR EACH ROW WHEN (NEW.identities IS DISTINCT FROM OLD.identities) EXECUTE FUNCTION keep_user_identities();

CREATE TABLE user_sso_identities (
  id          varchar(21) PRIMARY KEY,
  user_id     varchar(12) NOT NULL REFERENCES users ON DELETE CASCADE,
  provider_id varchar(21) NOT NULL REFERENCES identity_providers ON DELETE CASCADE,
  issuer      text        NOT NULL,
  subject     text        NOT NULL,
  -- What the provider said at the last sign-in.
  detail      jsonb       NOT NULL DEFAULT '{}',
  created_at  timestamptz NOT NULL DEFAULT now(),
  updated_at  timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT user_sso_identities_once UNIQUE (provider_id, subject)
);
CREATE INDEX user_sso_identities_by_user ON user_sso_identities (user_id);

-- Ids that were kept for when there would be connectors stay; new ones are checked.
ALTER TABLE organization_jit_sso_connectors ADD CONSTRAINT organization_jit_sso_connectors_provider
  FOREIGN KEY (sso_connector_id) REFERENCES identity_providers ON DELETE CASCADE NOT VALID;
`),
}
