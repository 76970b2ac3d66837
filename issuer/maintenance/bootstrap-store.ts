import { type Query, statement } from '../../platform/database/database.ts'
import { newId } from '../../platform/ids.ts'
import type { ConsoleRole } from '../base/console-roles.ts'
import { onlyRow } from '../base/only-row.ts'

const lock = statement('bootstrap-lock', `SELECT pg_advisory_xact_lock(7305172)`)

/** One instance at a time. */
export const lockBootstrap = async (query: Query): Promise<void> => {
  await query(lock, [])
}

const selectResources = statement('bootstrap-resources', `SELECT id FROM resources WHERE is_management`)

/** The ids of the Management API's resources: none in a new database. */
export const findManagementResources = async (query: Query): Promise<string[]> =>
  (await query<{ id: string }>(selectResources, [])).map(({ id }) => id)

const upsertResource = statement(
  'bootstrap-resource',
  `INSERT INTO resources (id, name, indicator, is_management) VALUES ($1, $2, $3, true)
   ON CONFLICT (indicator) DO UPDATE SET indicator = excluded.indicator RETURNING id, is_management AS "isManagement"`,
)
// They are listed by age: in the order in which they are given.
const insertScopes = statement(
  'bootstrap-scopes',
  `INSERT INTO scopes (resource_id, id, name, description, created_at)
   SELECT $1, id, name, description, now() + number * interval '1 microsecond'
   FROM unnest($2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS given (id, name, description, number)
   ON CONFLICT ON CONSTRAINT scopes_name DO NOTHING`,
)
const selectScope = statement('bootstrap-scope', `SELECT id FROM scopes WHERE resource_id = $1 AND name = $2`)

export interface ManagementResource {
  /** When it is not there yet. */
  id: string
  name: string
  indicator: string
  /** Name → description, `all` among them. */
  scopes: Readonly<Record<string, string>>
  /** Of permissions that are not there yet, by name. Default: a new id. */
  scopeIds: Readonly<Record<string, string>>
}

/** The resource with its permissions. Undefined when a caller had registered it: then others may hold them. */
export const ensureResource = async (
  query: Query,
  { id, name, indicator, scopes, scopeIds }: ManagementResource,
): Promise<{ id: string; allScopeId: string } | undefined> => {
  const resource = onlyRow(await query<{ id: string; isManagement: boolean }>(upsertResource, [id, name, indicator]))
  if (!resource.isManagement) return undefined
  const names = Object.keys(scopes)
  const ids = names.map((scope) => scopeIds[scope] ?? newId())
  const descriptions = names.map((scope) => scopes[scope])
  await query(insertScopes, [resource.id, ids, names, descriptions])
  return { id: resource.id, allScopeId: onlyRow(await query<{ id: string }>(selectScope, [resource.id, 'all'])).id }
}

const upsertRole = statement(
  'bootstrap-role',
  `INSERT INTO roles (id, name, description, type) VALUES ($1, $2, $3, 'MachineToMachine')
   ON CONFLICT ON CONSTRAINT roles_name DO UPDATE SET name = excluded.name RETURNING id, type`,
)
const insertRoleScopes = statement(
  'bootstrap-role-scopes',
  `INSERT INTO role_scopes (role_id, scope_id) SELECT $1, unnest($2::text[]) ON CONFLICT DO NOTHING`,
)

/** Undefined when the name is that of a user role, which must never carry permissions of the Management API. */
export const ensureRole = async (
  query: Query,
  role: { name: string; description: string; scopeIds: readonly string[] },
): Promise<string | undefined> => {
  const row = onlyRow(await query<{ id: string; type: string }>(upsertRole, [newId(), role.name, role.description]))
  if (row.type !== 'MachineToMachine') return undefined
  await query(insertRoleScopes, [row.id, role.scopeIds])
  return row.id
}

// Older versions let roles have any name, so somebody else's may have this one.
const insertConsoleRole = statement(
  'bootstrap-console-role',
  `INSERT INTO roles (id, name, description, type)
   SELECT $1::text, CASE WHEN EXISTS (SELECT FROM roles WHERE name = $2::text AND id <> $1::text)
     THEN $2::text || ' (' || $1::text || ')' ELSE $2::text END, $3, 'User'
   ON CONFLICT (id) DO NOTHING`,
)
const insertConsoleScopes = statement(
  'bootstrap-console-scopes',
  `INSERT INTO role_scopes (role_id, scope_id)
   SELECT $1, id FROM scopes WHERE resource_id = ANY ($2::text[]) AND name = ANY ($3::text[]) ON CONFLICT DO NOTHING`,
)

/** A role of the console, with its permissions on each of the Management API's resources. */
export const ensureConsoleRole = async (
  query: Query,
  { id, name, description, scopes }: ConsoleRole,
  resourceIds: readonly string[],
): Promise<void> => {
  await query(insertConsoleRole, [id, name, description])
  await query(insertConsoleScopes, [id, resourceIds, scopes])
}

// It has no secret, so that nobody outside the issuer can redeem a code of it. Its refresh tokens end with the session
// in which somebody signed in.
const upsertConsole = statement(
  'bootstrap-console',
  `INSERT INTO applications (id, name, description, type, oidc_client_metadata, custom_client_metadata)
   VALUES ($1, 'Console', 'The administration console', 'Traditional', coalesce($2::jsonb, '{}'),
     '{"alwaysIssueRefreshToken": true, "rotateRefreshToken": false, "refreshTokenTtlInDays": 1}')
   ON CONFLICT (id) DO UPDATE SET oidc_client_metadata = excluded.oidc_client_metadata
   WHERE $2 IS NOT NULL AND applications.oidc_client_metadata <> excluded.oidc_client_metadata`,
)

/** Without an address what others registered stays: they may have a console. */
export const ensureConsoleApplication = async (query: Query, id: string, url: string | undefined): Promise<void> => {
  const metadata = url && { redirectUris: [`${url}/console/callback`], postLogoutRedirectUris: [`${url}/console/`] }
  await query(upsertConsole, [id, metadata ? JSON.stringify(metadata) : null])
}

const findApplication = statement(
  'bootstrap-application-find',
  `SELECT id FROM applications WHERE type = 'MachineToMachine' AND ($1::text IS NULL AND custom_data @> '{"bootstrap": true}' OR id = $1)
   ORDER BY created_at LIMIT 1`,
)
const insertApplication = statement(
  'bootstrap-application',
  `INSERT INTO applications (id, name, description, type, custom_data)
   VALUES ($1, 'Bootstrap', 'Holds every permission of the Management API', 'MachineToMachine', '{"bootstrap": true}')
   ON CONFLICT DO NOTHING RETURNING id`,
)
const upsertSecret = statement(
  'bootstrap-secret',
  `INSERT INTO application_secrets (application_id, name, digest) VALUES ($1, 'Bootstrap secret', $2)
   ON CONFLICT ON CONSTRAINT application_secrets_name DO UPDATE SET digest = excluded.digest, expires_at = NULL`,
)
const insertApplicationRole = statement(
  'bootstrap-application-role',
  `INSERT INTO application_roles (application_id, role_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
)

/** With `id` that application, otherwise the one an earlier start made. */
export const findBootstrapApplication = async (query: Query, id: string | undefined): Promise<string | undefined> =>
  (await query<{ id: string }>(findApplication, [id]))[0]?.id

/** False when another kind of application has this id. */
export const insertBootstrapApplication = async (query: Query, id: string, roleId: string): Promise<boolean> => {
  if ((await query(insertApplication, [id])).length === 0) return false
  await query(insertApplicationRole, [id, roleId])
  return true
}

export const setBootstrapSecret = async (query: Query, id: string, digest: Buffer): Promise<void> => {
  await query(upsertSecret, [id, digest])
}
