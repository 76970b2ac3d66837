import { patternsOf } from '../../events/event-patterns.ts'
import { oneRow, type Query, statement } from '../../platform/database/database.ts'

/** What a deletion takes along, counted before it. A row of this table makes `dryRun` work on the operation. */

const open = 'ended_at IS NULL AND expires_at > now()'
const holders = (who: 'user' | 'application', scopes: string) =>
  `(SELECT DISTINCT ${who}_id FROM ${who}_roles JOIN role_scopes USING (role_id) WHERE scope_id IN (${scopes})) AS holders`

/** By kind of entity, each with what is counted `FROM`; `$1` is the id. */
const counted = {
  user: {
    sessions: `sessions WHERE user_id = $1 AND ${open} AND last_seen_at > now() - idle_ttl * interval '1 second'`,
    grants: `authorizations WHERE user_id = $1 AND ${open}`,
    impersonations: `impersonation_sessions WHERE (subject_id = $1 OR actor_id = $1) AND ${open}`,
    personalAccessTokens: 'personal_access_tokens WHERE user_id = $1',
    roles: 'user_roles WHERE user_id = $1',
    organizations: 'organization_users WHERE user_id = $1',
  },
  role: {
    users: 'user_roles WHERE role_id = $1',
    applications: 'application_roles WHERE role_id = $1',
    permissions: 'role_scopes WHERE role_id = $1',
  },
  scope: {
    roles: 'role_scopes WHERE scope_id = $1',
    organizationRoles: 'organization_role_resource_scopes WHERE scope_id = $1',
    users: holders('user', '$1'),
    applications: holders('application', '$1'),
  },
  resource: {
    permissions: 'scopes WHERE resource_id = $1',
    roles: `(SELECT DISTINCT role_id FROM role_scopes JOIN scopes ON scopes.id = scope_id WHERE resource_id = $1) AS carriers`,
    users: holders('user', 'SELECT id FROM scopes WHERE resource_id = $1'),
    applications: holders('application', 'SELECT id FROM scopes WHERE resource_id = $1'),
  },
  application: {
    secrets: 'application_secrets WHERE application_id = $1',
    grants: `authorizations WHERE client_id = $1 AND ${open}`,
    users: `(SELECT DISTINCT user_id FROM authorizations WHERE client_id = $1 AND ${open}) AS signed_in`,
    consents: 'consents WHERE client_id = $1 AND revoked_at IS NULL AND expires_at > now()',
    impersonations: `impersonation_sessions WHERE client_id = $1 AND ${open}`,
    roles: 'application_roles WHERE application_id = $1',
    organizations: 'organization_applications WHERE application_id = $1',
  },
  organization: {
    users: 'organization_users WHERE organization_id = $1',
    applications: 'organization_applications WHERE organization_id = $1',
  },
  'organization-role': {
    users: `(SELECT DISTINCT user_id FROM organization_user_roles WHERE organization_role_id = $1) AS holders`,
    applications: `(SELECT DISTINCT application_id FROM organization_application_roles
      WHERE organization_role_id = $1) AS holders`,
    organizations: `(SELECT organization_id FROM organization_user_roles WHERE organization_role_id = $1
      UNION SELECT organization_id FROM organization_application_roles WHERE organization_role_id = $1) AS known`,
  },
  'organization-scope': {
    organizationRoles: 'organization_role_scopes WHERE organization_scope_id = $1',
    users: `(SELECT DISTINCT user_id FROM organization_user_roles JOIN organization_role_scopes USING (organization_role_id)
      WHERE organization_scope_id = $1) AS holders`,
  },
  connector: {
    users: `(SELECT user_id FROM user_identities WHERE target = (SELECT target FROM identity_providers WHERE id = $1)
      UNION SELECT user_id FROM user_sso_identities WHERE provider_id = $1) AS linked`,
    organizations: 'organization_jit_sso_connectors WHERE sso_connector_id = $1',
  },
  hook: {
    openDeliveries: 'open_deliveries WHERE hook_id = $1',
    replays: `replays WHERE hook_id = $1 AND state = 'running'`,
  },
} as const satisfies Record<string, Record<string, string>>

const statements = new Map(
  Object.entries(counted).map(([kind, counts]) => {
    const columns = Object.entries(counts).map(([name, from]) => `(SELECT count(*) FROM ${from}) AS "${name}"`)
    return [kind, statement(`consequences-${kind}`, `SELECT ${columns.join(', ')}`)]
  }),
)

export type Counts = Record<string, number>

export const hasConsequences = (kind: string): boolean => statements.has(kind)

export const countConsequences = (query: Query, { kind, id }: { kind: string; id: string }): Promise<Counts> => {
  const counting = statements.get(kind)
  if (counting === undefined) throw new TypeError(`Nothing says what the deletion of a ${kind} takes along.`)
  return oneRow(query<Counts>(counting, [id]))
}

const hearing = statement(
  'hooks-hearing',
  `SELECT count(*) AS hooks FROM hooks WHERE enabled AND EXISTS (
     SELECT FROM jsonb_to_recordset($1::jsonb) AS event (patterns text[], "organizationId" text)
     WHERE hooks.events && event.patterns
       AND (organization_ids IS NULL OR event."organizationId" = ANY(organization_ids)))`,
)

/** How many enabled hooks get one of these events. */
export const hooksHearing = async (
  query: Query,
  events: readonly { type: string; organizationId?: string | undefined }[],
): Promise<number> => {
  const distinct = new Map(
    events.map(({ type, organizationId }) => [
      `${type} ${organizationId}`,
      { patterns: patternsOf(type), organizationId },
    ]),
  )
  return (await oneRow(query<{ hooks: number }>(hearing, [JSON.stringify([...distinct.values()])]))).hooks
}
