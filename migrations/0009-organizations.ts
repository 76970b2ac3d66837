import type { Migration } from '../platform/database/database.ts'

/** Organizations with their members (users and applications), and the roles and permissions that members have there. */
export const organizations: Migration = {
  name: '0009-organizations',
  up: (knex) =>
    knex.raw(`
CREATE TABLE organizations (
  id              varchar(12)  PRIMARY KEY,
  name            varchar(128) NOT NULL,
  description     varchar(256),
  custom_data     jsonb        NOT NULL DEFAULT '{}',
  is_mfa_required boolean      NOT NULL DEFAULT false,
  color           jsonb        NOT NULL DEFAULT '{}',
  branding        jsonb        NOT NULL DEFAULT '{}',
  custom_css      text,
  created_at      timestamptz  NOT NULL DEFAULT now()
);
CREATE INDEX organizations_by_creation ON organizations (created_at DESC, id);

-- Roles and permissions are the same in every organization; who has a role differs.
CREATE TABLE organization_roles (
  id          varchar(21)  PRIMARY KEY,
  name        varchar(128) NOT NULL CONSTRAINT organization_roles_name UNIQUE,
  description varchar(256),
  type        varchar(32)  NOT NULL CHECK (type IN ('User', 'MachineToMachine')),
  created_at  timestamptz  NOT NULL DEFAULT now()
);

CREATE TABLE organization_scopes (
  id          varchar(21)  PRIMARY KEY,
  name        varchar(128) NOT NULL CONSTRAINT organization_scopes_name UNIQUE,
  description varchar(256),
  created_at  timestamptz  NOT NULL DEFAULT now()
);

CREATE TABLE organization_role_scopes (
  organization_role_id  varchar(21) NOT NULL REFERENCES organization_roles ON DELETE CASCADE,
  organization_scope_id varchar(21) NOT NULL REFERENCES organization_scopes ON DELETE CASCADE,
  CONSTRAINT organization_role_scopes_once PRIMARY KEY (organization_role_id, organization_scope_id)
);
CREATE INDEX organization_role_scopes_by_scope ON organization_role_scopes (organization_scope_id);

-- Permissions of API resources.
CREATE TABLE organization_role_resource_scopes (
  organization_role_id varchar(21) NOT NULL REFERENCES organization_roles ON DELETE CASCADE,
  scope_id             varchar(21) NOT NULL REFERENCES scopes ON DELETE CASCADE,
  CONSTRAINT organization_role_resource_scopes_once PRIMARY KEY (organization_role_id, scope_id)
);
CREATE INDEX organization_role_resource_scopes_by_scope ON organization_role_resource_scopes (scope_id);

CREATE TABLE organization_users (
  organization_id varchar(12) NOT NULL REFERENCES organizations ON DELETE CASCADE,
  user_id         varchar(12) NOT NULL REFERENCES users ON DELETE CASCADE,
  created_at      timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT organization_users_once PRIMARY KEY (organization_id, user_id)
);
CREATE INDEX organization_users_by_user ON organization_users (user_id, created_at DESC, organization_id);
CREATE INDEX organization_users_by_joining ON organization_users (organization_id, created_at DESC, user_id);

CREATE TABLE organization_applications (
  organization_id varchar(12) NOT NULL REFERENCES organizations ON DELETE CASCADE,
  application_id  varchar(21) NOT NULL REFERENCES applications ON DELETE CASCADE,
  created_at      timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT organization_applications_once PRIMARY KEY (organization_id, application_id)
);
CREATE INDEX organization_applications_by_application ON organization_applications (application_id, created_at DESC, organization_id);
CREATE INDEX organization_applications_by_joining ON organization_applications (organization_id, created_at DESC, application_id);

-- Only members have roles, and who leaves has none.
CREATE TABLE organization_user_roles (
  organization_id      varchar(12) NOT NULL,
  user_id              varchar(12) NOT NULL,
  organization_role_id varchar(21) NOT NULL REFERENCES organization_roles ON DELETE CASCADE,
  CONSTRAINT organization_user_roles_once PRIMARY KEY (organization_id, user_id, organization_role_id),
  CONSTRAINT organization_user_roles_member FOREIGN KEY (organization_id, user_id) REFERENCES organization_users ON DELETE CASCADE
);
CREATE INDEX organization_user_roles_by_role ON organization_user_roles (organization_role_id);

CREATE TABLE organization_application_roles (
  organization_id      varchar(12) NOT NULL,
  application_id       varchar(21) NOT NULL,
  organization_role_id varchar(21) NOT NULL REFERENCES organization_roles ON DELETE CASCADE,
  CONSTRAINT organization_application_roles_once PRIMARY KEY (organization_id, application_id, organization_role_id),
  CONSTRAINT organization_application_roles_member FOREIGN KEY (organization_id, application_id) REFERENCES organization_applications ON DELETE CASCADE
);
CREATE INDEX organization_application_roles_by_role ON organization_application_roles (organization_role_id);
`),
}
