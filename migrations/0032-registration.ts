import type { Migration } from '../platform/database/database.ts'

/** How old passwords are, who joins which organization on coming, and one-time tokens. */
export const registration: Migration = {
  name: '0032-registration',
  up: (knex) =>
    knex.raw(`
ALTER TABLE users
  -- Null: not known, the password is as old as the user.
  ADD COLUMN password_changed_at timestamptz,
  -- Whatever its age.
  ADD COLUMN password_expired    boolean NOT NULL DEFAULT false;

-- Who comes with an address of one of these domains joins. In lower case.
CREATE TABLE organization_jit_email_domains (
  organization_id varchar(12)  NOT NULL REFERENCES organizations ON DELETE CASCADE,
  email_domain    varchar(128) NOT NULL,
  created_at      timestamptz  NOT NULL DEFAULT now(),
  CONSTRAINT organization_jit_email_domains_once PRIMARY KEY (organization_id, email_domain)
);
CREATE INDEX organization_jit_email_domains_by_domain ON organization_jit_email_domains (email_domain);

-- What they are given there.
CREATE TABLE organization_jit_roles (
  organization_id      varchar(12) NOT NULL REFERENCES organizations ON DELETE CASCADE,
  organization_role_id varchar(21) NOT NULL REFERENCES organization_roles ON DELETE CASCADE,
  CONSTRAINT organization_jit_roles_once PRIMARY KEY (organization_id, organization_role_id)
);
CREATE INDEX organization_jit_roles_by_role ON organization_jit_roles (organization_role_id);

CREATE TABLE organization_jit_sso_connectors (
  organization_id  varchar(12)  NOT NULL REFERENCES organizations ON DELETE CASCADE,
  sso_connector_id varchar(128) NOT NULL,
  created_at       timestamptz  NOT NULL DEFAULT now(),
  CONSTRAINT organization_jit_sso_connectors_once PRIMARY KEY (organization_id, sso_connector_id)
);
CREATE INDEX organization_jit_sso_connectors_by_connector ON organization_jit_sso_connectors (sso_connector_id);

CREATE TABLE one_time_tokens (
  id          varchar(21)  PRIMARY KEY,
  digest      bytea        NOT NULL CONSTRAINT one_time_tokens_digest UNIQUE,
  email       varchar(128) NOT NULL,
  context     jsonb        NOT NULL DEFAULT '{}',
  created_at  timestamptz  NOT NULL DEFAULT now(),
  expires_at  timestamptz  NOT NULL,
  consumed_at timestamptz,
  revoked_at  timestamptz,
  -- Expired by the Management API, before its time.
  ended_at    timestamptz
);
CREATE INDEX one_time_tokens_by_email ON one_time_tokens (lower(email));
CREATE INDEX one_time_tokens_by_creation ON one_time_tokens (created_at DESC, id);
CREATE INDEX one_time_tokens_by_expiry ON one_time_tokens (expires_at);
`),
}
