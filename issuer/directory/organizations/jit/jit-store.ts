import type { Knex } from 'knex'
import { type Listed, listed, type Page } from '../../../base/lists/list-store.ts'
import type { OrganizationRoleRow } from '../roles/organization-role.ts'

/** What an organization says of people who come, as rows: tables that are used alike. */
const tables = {
  emailDomain: { table: 'organization_jit_email_domains', column: 'email_domain' },
  role: { table: 'organization_jit_roles', column: 'organization_role_id' },
  ssoConnector: { table: 'organization_jit_sso_connectors', column: 'sso_connector_id' },
} as const

export type JitKind = keyof typeof tables

/** In the order of their making. */
export const listJitValues = async (
  knex: Knex,
  kind: 'emailDomain',
  organizationId: string,
  page: Page | undefined,
): Promise<Listed<string>> => {
  const { table, column } = tables[kind]
  const query = knex(table).where({ organization_id: organizationId }).orderBy(['created_at', column])
  const { rows, total } = await listed<{ value: string }>(query.select({ value: column }), page)
  return { rows: rows.map(({ value }) => value), total }
}

export interface JitSsoConnectorRow {
  id: string
  providerName: string
  connectorName: string
  domains: string[]
  branding: Record<string, unknown>
  syncProfile: boolean
  createdAt: Date
}

/** In the order of their making. Of an id that was kept for a connector to come there is no more than the id. */
export const listJitSsoConnectors = (
  knex: Knex,
  organizationId: string,
  page: Page | undefined,
): Promise<Listed<JitSsoConnectorRow>> =>
  listed(
    knex({ jit: tables.ssoConnector.table })
      .leftJoin({ p: 'identity_providers' }, 'p.id', 'jit.sso_connector_id')
      .where({ organization_id: organizationId })
      .orderBy(['jit.created_at', 'sso_connector_id'])
      .select({ id: 'sso_connector_id' })
      .select(
        knex.raw(`coalesce(p.provider, '') AS "providerName", coalesce(p.name, '') AS "connectorName",
          ARRAY(SELECT domain FROM identity_provider_domains d WHERE d.provider_id = p.id ORDER BY position) AS domains,
          coalesce(p.look, '{}') AS branding, coalesce(p.sync_profile, false) AS "syncProfile",
          coalesce(p.created_at, jit.created_at) AS "createdAt"`),
      ),
    page,
  )

/** In the order of their making. */
export const listJitRoles = (
  knex: Knex,
  organizationId: string,
  page: Page | undefined,
): Promise<Listed<OrganizationRoleRow>> =>
  listed(
    knex(tables.role.table)
      .join('organization_roles', 'organization_roles.id', `${tables.role.table}.organization_role_id`)
      .where({ organization_id: organizationId })
      .orderBy(['organization_roles.created_at', 'organization_roles.id'])
      .select('organization_roles.*'),
    page,
  )

/** Those of the ids that are enterprise connectors; they stay until the transaction ends. */
export const shareSsoConnectors = (trx: Knex, ids: readonly string[]): Promise<{ id: string }[]> =>
  trx('identity_providers')
    .whereIn('id', [...ids])
    .where({ kind: 'sso' })
    .orderBy('id')
    .forKeyShare()
    .select('id')

/** Leaves out those that are there; answers how many were added. */
export const addJitValues = async (
  trx: Knex,
  kind: JitKind,
  organizationId: string,
  values: readonly string[],
): Promise<number> => {
  if (values.length === 0) return 0
  const { table, column } = tables[kind]
  const added = await trx(table)
    .insert(values.map((value) => ({ organization_id: organizationId, [column]: value })))
    .onConflict()
    .ignore()
    .returning(column)
  return added.length
}

/** Answers how many were removed. */
export const removeJitValue = (trx: Knex, kind: JitKind, organizationId: string, value: string): Promise<number> => {
  const { table, column } = tables[kind]
  return trx(table)
    .where({ organization_id: organizationId, [column]: value })
    .delete()
}

export const removeOtherJitValues = async (
  trx: Knex,
  kind: JitKind,
  organizationId: string,
  values: readonly string[],
): Promise<void> => {
  const { table, column } = tables[kind]
  await trx(table)
    .where({ organization_id: organizationId })
    .whereRaw('?? <> ALL (?::text[])', [column, [...values]])
    .delete()
}
