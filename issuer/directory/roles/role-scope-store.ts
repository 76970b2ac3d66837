import type { Knex } from 'knex'
import { type Listed, listed, type Page } from '../../base/lists/list-store.ts'
import { matching } from '../../base/lists/matching-store.ts'
import type { Search } from '../../base/lists/search.ts'
import type { ResourceRow } from '../resources/resource.ts'
import type { ScopeRow } from '../resources/scope.ts'

/** Which permissions a role carries. */
const scopesOf = (knex: Knex, roleId: string): Knex.QueryBuilder =>
  knex('scopes')
    .join('role_scopes', 'role_scopes.scope_id', 'scopes.id')
    .where('role_scopes.role_id', roleId)
    .orderBy(['scopes.created_at', 'scopes.id'])

export const listScopesOfRole = (knex: Knex, roleId: string): Promise<ScopeRow[]> =>
  scopesOf(knex, roleId).select('scopes.*')

const searchColumns: Record<string, string> = {
  id: 'scopes.id',
  name: 'scopes.name',
  description: 'scopes.description',
}

/** Each with the resource it belongs to. */
export const pageScopesOfRole = (
  knex: Knex,
  roleId: string,
  search: Search | undefined,
  page: Page | undefined,
): Promise<Listed<ScopeRow & { resource: ResourceRow }>> => {
  const query = scopesOf(knex, roleId)
    .join('resources', 'resources.id', 'scopes.resource_id')
    .select('scopes.*', knex.raw('to_json(resources) AS resource'))
  matching(query, search, searchColumns)
  return listed(query, page)
}

/** Violates `role_scopes_once` when one is there already. */
export const addScopes = async (trx: Knex, roleId: string, scopeIds: readonly string[]): Promise<void> => {
  if (scopeIds.length === 0) return
  await trx('role_scopes').insert(scopeIds.map((scopeId) => ({ role_id: roleId, scope_id: scopeId })))
}

export const removeScope = (trx: Knex, roleId: string, scopeId: string): Promise<number> =>
  trx('role_scopes').where({ role_id: roleId, scope_id: scopeId }).delete()
