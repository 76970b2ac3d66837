import type { Knex } from 'knex'
import { keywordSearch } from '../../../base/lists/keyword.ts'
import { type Listed, listed, type Page } from '../../../base/lists/list-store.ts'
import { matching } from '../../../base/lists/matching-store.ts'
import type { ScopeRow } from '../../resources/scope.ts'
import { lockScopes } from '../../resources/scope-store.ts'
import type { OrganizationScopeRow } from '../scopes/organization-scope.ts'
import { lockOrganizationScopes } from '../scopes/organization-scope-store.ts'

/**
 * What an organization role carries: permissions inside organizations, and permissions of API resources. The two tables
 * are used alike.
 */
const kinds = {
  organization: {
    table: 'organization_role_scopes',
    column: 'organization_scope_id',
    scopes: 'organization_scopes',
    lock: lockOrganizationScopes,
  },
  resource: {
    table: 'organization_role_resource_scopes',
    column: 'scope_id',
    scopes: 'scopes',
    lock: lockScopes,
  },
} as const

export type ScopeKind = keyof typeof kinds
export interface ScopeRows {
  organization: OrganizationScopeRow
  resource: ScopeRow
}

/** Those of `ids` that exist; they cannot be deleted before the transaction ends. */
export const lockScopesOf = <Kind extends ScopeKind>(
  trx: Knex,
  kind: Kind,
  ids: readonly string[],
): Promise<ScopeRows[Kind][]> => kinds[kind].lock(trx, ids) as Promise<ScopeRows[Kind][]>

/** In the order of their making. */
export const listScopes = <Kind extends ScopeKind>(
  knex: Knex,
  kind: Kind,
  roleId: string,
  q?: string | undefined,
  page?: Page | undefined,
): Promise<Listed<ScopeRows[Kind]>> => {
  const { table, column, scopes } = kinds[kind]
  const query = knex(scopes)
    .join(table, `${table}.${column}`, `${scopes}.id`)
    .where(`${table}.organization_role_id`, roleId)
    .orderBy([`${scopes}.created_at`, `${scopes}.id`])
    .select(`${scopes}.*`)
  const fields = ['id', 'name', 'description']
  matching(query, keywordSearch(q, fields), Object.fromEntries(fields.map((field) => [field, `${scopes}.${field}`])))
  return listed(query, page)
}

export const scopeIdsOf = async (trx: Knex, kind: ScopeKind, roleId: string): Promise<string[]> => {
  const { table, column } = kinds[kind]
  return (await trx(table).where({ organization_role_id: roleId }).select({ id: column })).map(({ id }) => id as string)
}

/** Leaves out those that are there; answers how many were added. */
export const addScopes = async (trx: Knex, kind: ScopeKind, roleId: string, ids: readonly string[]) => {
  if (ids.length === 0) return 0
  const { table, column } = kinds[kind]
  const added = await trx(table)
    .insert(ids.map((id) => ({ organization_role_id: roleId, [column]: id })))
    .onConflict()
    .ignore()
    .returning(column)
  return added.length
}

/** Answers how many were removed. */
export const removeScopes = async (trx: Knex, kind: ScopeKind, roleId: string, ids: readonly string[]) => {
  if (ids.length === 0) return 0
  const { table, column } = kinds[kind]
  return trx(table).where({ organization_role_id: roleId }).whereIn(column, ids).delete()
}
