import type { Migration } from '../platform/database/database.ts'

/** Users, resources with scopes, roles, applications with secrets, and the audit log. */
export const identity: Migration = {
  name: '0001-identity',
  up: (knex) =>
    knex.raw(`
CREATE TABLE users (
  id                 varchar(12)   PRIMARY KEY,
  username           varchar(128)  UNIQUE,
  primary_email      varchar(128)  UNIQUE,
  primary_phone      varchar(128)  UNIQUE,
  password_digest    varchar(512),
  password_algorithm varchar(32),
  name               varchar(128),
  avatar             varchar(2048),
  profile            jsonb         NOT NULL DEFAULT '{}',
  custom_data        jsonb         NOT NULL DEFAULT '{}',
  identities         jsonb         NOT NULL DEFAULT '{}',
  application_id     varchar(21),
  is_suspended       boolean       NOT NULL DEFAULT false,
  last_sign_in_at    timestamptz,
  created_at         timestamptz   NOT NULL DEFAULT now(),
  updated_at         timestamptz   NOT NULL DEFAULT now(),
  CONSTRAINT users_password CHECK ((password_digest IS NULL) = (password_algorithm IS NULL))
);
CREATE INDEX users_by_creation ON users (created_at DESC, id);

CREATE TABLE resources (
  id               varchar(21)   PRIMARY KEY,
  name             varchar(256)  NOT NULL,
  indicator        varchar(2048) NOT NULL CONSTRAINT resources_indicator UNIQUE,
  is_default       boolean       NOT NULL DEFAULT false,
  access_token_ttl integer       NOT NULL DEFAULT 3600 CHECK (access_token_ttl > 0),
  created_at       timestamptz   NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX resources_one_default ON resources (is_default) WHERE is_default;

CREATE TABLE scopes (
  id          varchar(21)  PRIMARY KEY,
  resource_id varchar(21)  NOT NULL REFERENCES resources ON DELETE CASCADE,
  name        varchar(256) NOT NULL,
  description text,
  created_at  timestamptz  NOT NULL DEFAULT now(),
  CONSTRAINT scopes_name UNIQUE (resource_id, name)
);

CREATE TABLE roles (
  id          varchar(21)  PRIMARY KEY,
  name        varchar(128) NOT NULL CONSTRAINT roles_name UNIQUE,
  description varchar(128) NOT NULL,
  type        varchar(32)  NOT NULL CHECK (type IN ('User', 'MachineToMachine')),
  is_default  boolean      NOT NULL DEFAULT false,
  created_at  timestamptz  NOT NULL DEFAULT now()
);

CREATE TABLE role_scopes (
  role_id  varchar(21) NOT NULL REFERENCES roles ON DELETE CASCADE,
  scope_id varchar(21) NOT NULL REFERENCES scopes ON DELETE CASCADE,
  CONSTRAINT role_scopes_once PRIMARY KEY (role_id, scope_id)
);
CREATE INDEX role_scopes_by_scope ON role_scopes (scope_id);

CREATE TABLE applications (
  id                     varchar(21)  PRIMARY KEY,
  name                   varchar(256) NOT NULL,
  description            text,
  type                   varchar(32)  NOT NULL CHECK (type IN ('Native', 'SPA', 'Traditional', 'MachineToMachine', 'Protected', 'SAML')),
  oidc_client_metadata   jsonb        NOT NULL DEFAULT '{}',
  custom_client_metadata jsonb        NOT NULL DEFAULT '{}',
  custom_data            jsonb        NOT NULL DEFAULT '{}',
  is_third_party         boolean      NOT NULL DEFAULT false,
  created_at             timestamptz  NOT NULL DEFAULT now()
);

-- Values are at least 256 random bits, so a plain SHA-256 is enough; the value itself is shown once and not kept.
CREATE TABLE application_secrets (
  application_id varchar(21)  NOT NULL REFERENCES applications ON DELETE CASCADE,
  name           varchar(256) NOT NULL,
  digest         bytea        NOT NULL,
  created_at     timestamptz  NOT NULL DEFAULT now(),
  expires_at     timestamptz,
  CONSTRAINT application_secrets_name PRIMARY KEY (application_id, name)
);

CREATE TABLE user_roles (
  user_id varchar(12) NOT NULL REFERENCES users ON DELETE CASCADE,
  role_id varchar(21) NOT NULL REFERENCES roles ON DELETE CASCADE,
  CONSTRAINT user_roles_once PRIMARY KEY (user_id, role_id)
);
CREATE INDEX user_roles_by_role ON user_roles (role_id);

CREATE TABLE application_roles (
  application_id varchar(21) NOT NULL REFERENCES applications ON DELETE CASCADE,
  role_id        varchar(21) NOT NULL REFERENCES roles ON DELETE CASCADE,
  CONSTRAINT application_roles_once PRIMARY KEY (application_id, role_id)
);
CREATE INDEX application_roles_by_role ON application_roles (role_id);

-- The audit trail. No foreign keys: a row outlives what it tells of.
CREATE TABLE logs (
  id             varchar(21) PRIMARY KEY,
  key            text        NOT NULL,
  result         text        NOT NULL CHECK (result IN ('Success', 'Error')),
  application_id text,
  user_id        text,
  payload        jsonb       NOT NULL,
  created_at     timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX logs_by_creation ON logs (created_at DESC, id);
CREATE INDEX logs_by_key ON logs (key, created_at DESC);
CREATE INDEX logs_by_user ON logs (user_id, created_at DESC) WHERE user_id IS NOT NULL;
CREATE INDEX logs_by_application ON logs (application_id, created_at DESC) WHERE application_id IS NOT NULL;
`),
}
