import { type Query, statement } from '../../../platform/database/database.ts'
import { onlyRow } from '../../base/only-row.ts'
import type { ConsentScopeKind, ConsentScopes } from './consent-scopes.ts'

const ofResources = (inOrganization: boolean) =>
  `(SELECT coalesce(json_agg(json_build_object(
       'resource', json_build_object('id', r.id, 'name', r.name, 'indicator', r.indicator), 'scopes', allowed.scopes)
       ORDER BY r.name, r.id), '[]')
    FROM resources r JOIN LATERAL (
      SELECT json_agg(json_build_object('id', s.id, 'name', s.name, 'description', s.description) ORDER BY s.name) AS scopes
      FROM application_consent_scopes c JOIN scopes s ON s.id = c.scope_id
      WHERE c.application_id = $1 AND c.in_organization = ${inOrganization} AND s.resource_id = r.id) allowed
    ON allowed.scopes IS NOT NULL)`

const select = statement(
  'consent-scopes',
  `SELECT
     (SELECT coalesce(json_agg(json_build_object('id', o.id, 'name', o.name, 'description', o.description)
        ORDER BY o.name), '[]')
      FROM application_consent_organization_scopes c JOIN organization_scopes o ON o.id = c.organization_scope_id
      WHERE c.application_id = $1) AS "organizationScopes",
     ${ofResources(false)} AS "resourceScopes", ${ofResources(true)} AS "organizationResourceScopes",
     (SELECT coalesce(json_agg(name ORDER BY name), '[]') FROM application_consent_user_scopes
      WHERE application_id = $1) AS "userScopes"`,
)

export const findConsentScopes = async (query: Query, applicationId: string): Promise<ConsentScopes> =>
  onlyRow(await query<ConsentScopes>(select, [applicationId]))

const kinds = {
  'organization-scopes': {
    table: 'application_consent_organization_scopes',
    column: 'organization_scope_id',
    source: 'organization_scopes',
    more: {},
  },
  'resource-scopes': {
    table: 'application_consent_scopes',
    column: 'scope_id',
    source: 'scopes',
    more: { in_organization: 'false' },
  },
  'organization-resource-scopes': {
    table: 'application_consent_scopes',
    column: 'scope_id',
    source: 'scopes',
    more: { in_organization: 'true' },
  },
  'user-scopes': { table: 'application_consent_user_scopes', column: 'name', source: undefined, more: {} },
} as const satisfies Record<
  ConsentScopeKind,
  { table: string; column: string; source: string | undefined; more: Record<string, string> }
>

const statementsOf = (kind: ConsentScopeKind) => {
  const { table, column, source, more } = kinds[kind]
  const names = ['application_id', column, ...Object.keys(more)]
  const values = ['$1', 'named.id', ...Object.values(more)]
  const known = source === undefined ? '' : ` JOIN ${source} known ON known.id = named.id`
  const conditions = Object.entries(more).map(([name, value]) => ` AND ${name} = ${value}`)
  return {
    // What is there already counts as found.
    insert: statement(
      `consent-scopes-add-${kind}`,
      `WITH found AS (SELECT named.id FROM unnest($2::text[]) AS named (id)${known}),
       added AS (INSERT INTO ${table} (${names.join()}) SELECT ${values.join()} FROM found AS named ON CONFLICT DO NOTHING)
       SELECT id FROM found`,
    ),
    remove: statement(
      `consent-scopes-remove-${kind}`,
      `DELETE FROM ${table} WHERE application_id = $1 AND ${column} = $2${conditions.join('')} RETURNING ${column}`,
    ),
  }
}

const statements = Object.fromEntries(
  (Object.keys(kinds) as ConsentScopeKind[]).map((kind) => [kind, statementsOf(kind)]),
) as Record<ConsentScopeKind, ReturnType<typeof statementsOf>>

/** Answers those that exist. */
export const addConsentScopes = (
  query: Query,
  applicationId: string,
  kind: ConsentScopeKind,
  scopeIds: readonly string[],
): Promise<{ id: string }[]> => query<{ id: string }>(statements[kind].insert, [applicationId, scopeIds])

/** False when there was none. */
export const removeConsentScope = async (
  query: Query,
  applicationId: string,
  kind: ConsentScopeKind,
  scopeId: string,
): Promise<boolean> => (await query(statements[kind].remove, [applicationId, scopeId])).length > 0

const management = statement(
  'consent-scopes-of-management',
  `SELECT s.id FROM scopes s JOIN resources r ON r.id = s.resource_id WHERE r.is_management AND s.id = ANY ($1::text[])`,
)

/** Of these scopes those of the Management API, which people give to nobody. */
export const managementScopesAmong = (query: Query, scopeIds: readonly string[]): Promise<{ id: string }[]> =>
  query<{ id: string }>(management, [scopeIds])
