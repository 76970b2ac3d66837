import type { Migration } from '../platform/database/database.ts'

/**
 * Applications are told when an authorization of theirs ends (OpenID Connect Back-Channel Logout 1.0), and those of
 * third parties ask people only for what they were allowed to ask for.
 */
export const logouts: Migration = {
  name: '0041-logouts',
  up: (knex) =>
    knex.raw(`
-- One for each authorization that ended. No foreign keys: it outlives the person, and whoever ends an authorization
-- does not wait for the row of its application.
CREATE TABLE logout_deliveries (
  -- The claim sid.
  authorization_id varchar(21) PRIMARY KEY,
  user_id          varchar(12) NOT NULL,
  client_id        varchar(21) NOT NULL,
  -- The logout token of the next attempt; a relay takes it away with the delivery.
  sealed           bytea,
  token_expires_at timestamptz,
  state            text        NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'failed')),
  -- Why the last attempt failed, in our words; null: no attempt has failed.
  error            text,
  attempts         integer     NOT NULL DEFAULT 0,
  -- While a relay sends it, when others take it over.
  next_attempt_at  timestamptz NOT NULL DEFAULT now(),
  created_at       timestamptz NOT NULL DEFAULT now(),
  -- It is given up then.
  expires_at       timestamptz NOT NULL DEFAULT now() + interval '15 minutes',
  finished_at      timestamptz,
  CHECK ((sealed IS NULL) = (token_expires_at IS NULL)),
  CHECK (state = 'waiting' OR sealed IS NULL),
  CHECK ((state = 'waiting') = (finished_at IS NULL))
);
CREATE INDEX logout_deliveries_due ON logout_deliveries (next_attempt_at) WHERE state = 'waiting';
CREATE INDEX logout_deliveries_by_expiry ON logout_deliveries (expires_at) WHERE state = 'waiting';
CREATE INDEX logout_deliveries_by_user ON logout_deliveries (user_id) WHERE state = 'waiting';
CREATE INDEX logout_deliveries_by_end ON logout_deliveries (finished_at) WHERE state <> 'waiting';

-- What a third-party application may ask people for: scopes of resources, for itself and within organizations;
-- permissions of organizations; and scopes of OpenID Connect.
CREATE TABLE application_consent_scopes (
  application_id  varchar(21) NOT NULL REFERENCES applications ON DELETE CASCADE,
  scope_id        varchar(21) NOT NULL REFERENCES scopes ON DELETE CASCADE,
  in_organization boolean     NOT NULL,
  CONSTRAINT application_consent_scopes_once PRIMARY KEY (application_id, scope_id, in_organization)
);
CREATE INDEX application_consent_scopes_by_scope ON application_consent_scopes (scope_id);
CREATE TABLE application_consent_organization_scopes (
  application_id        varchar(21) NOT NULL REFERENCES applications ON DELETE CASCADE,
  organization_scope_id varchar(21) NOT NULL REFERENCES organization_scopes ON DELETE CASCADE,
  CONSTRAINT application_consent_organization_scopes_once PRIMARY KEY (application_id, organization_scope_id)
);
CREATE INDEX application_consent_organization_scopes_by_scope
  ON application_consent_organization_scopes (organization_scope_id);
CREATE TABLE application_consent_user_scopes (
  application_id varchar(21) NOT NULL REFERENCES applications ON DELETE CASCADE,
  name           text        NOT NULL,
  CONSTRAINT application_consent_user_scopes_once PRIMARY KEY (application_id, name)
);

-- Those there are could ask for everything so far.
INSERT INTO application_consent_scopes (application_id, scope_id, in_organization)
  SELECT a.id, s.id, o.inside FROM applications a, resources r JOIN scopes s ON s.resource_id = r.id,
    (VALUES (false), (true)) AS o (inside)
  WHERE a.is_third_party AND NOT r.is_management;
INSERT INTO application_consent_organization_scopes (application_id, organization_scope_id)
  SELECT a.id, o.id FROM applications a, organization_scopes o WHERE a.is_third_party;
INSERT INTO application_consent_user_scopes (application_id, name)
  SELECT a.id, known.name FROM applications a, unnest(ARRAY['profile', 'email', 'phone', 'address', 'custom_data', 'identities',
    'roles', 'urn:logto:scope:organizations', 'urn:logto:scope:organization_roles', 'urn:logto:scope:sessions']) AS known (name)
  WHERE a.is_third_party;
`),
}
