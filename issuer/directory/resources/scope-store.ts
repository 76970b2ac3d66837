import type { Knex } from 'knex'
import type { Page } from '../../base/lists/list-store.ts'
import { type Listed, listed, matching } from '../../base/lists/list-store.ts'
import type { Search } from '../../base/lists/search.ts'
import type { ScopeRow } from './scope.ts'

export type ScopeColumns = Pick<ScopeRow, 'name' | 'description'>

export const insertScope = async (
  trx: Knex,
  scope: ScopeColumns & { id: string; resource_id: string },
): Promise<ScopeRow> => {
  const [row] = await trx<ScopeRow>('scopes').insert(scope).returning('*')
  return row as ScopeRow
}

/** The permission of this resource, which stays as it is until the transaction ends. */
export const lockScope = (trx: Knex, resourceId: string, id: string): Promise<ScopeRow | undefined> =>
  trx<ScopeRow>('scopes').where({ id, resource_id: resourceId }).forNoKeyUpdate().first()

/** Those of `ids` that exist; they cannot be deleted before the transaction ends. */
export const lockScopes = (trx: Knex, ids: readonly string[]): Promise<ScopeRow[]> =>
  trx<ScopeRow>('scopes').whereIn('id', ids).orderBy('id').forKeyShare()

export const updateScope = async (trx: Knex, id: string, columns: Partial<ScopeColumns>): Promise<ScopeRow> => {
  const [row] = await trx<ScopeRow>('scopes').where({ id }).update(columns).returning('*')
  return row as ScopeRow
}

export const deleteScope = (trx: Knex, id: string): Promise<number> => trx<ScopeRow>('scopes').where({ id }).delete()

const searchColumns: Record<string, string> = {
  id: 'scopes.id',
  name: 'scopes.name',
  description: 'scopes.description',
}

/** In the order of their making. */
export const listScopes = (
  knex: Knex,
  resourceId: string,
  search: Search | undefined,
  page: Page | undefined,
): Promise<Listed<ScopeRow>> => {
  const query = knex<ScopeRow>('scopes')
    .where({ resource_id: resourceId })
    .select('scopes.*')
    .orderBy(['scopes.created_at', 'scopes.id'])
  matching(query, search, searchColumns)
  return listed(query, page)
}

export const scopesOfResources = (knex: Knex, resourceIds: readonly string[]): Promise<ScopeRow[]> =>
  knex<ScopeRow>('scopes').whereIn('resource_id', resourceIds).orderBy(['created_at', 'id'])
