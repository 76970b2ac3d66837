import type { Knex } from 'knex'
import { type Listed, listed, type Page } from '../../base/lists/list-store.ts'
import { matching } from '../../base/lists/matching-store.ts'
import type { Search } from '../../base/lists/search.ts'
import { rowsOf } from '../../base/rows-store.ts'
import type { ScopeRow } from './scope.ts'

export type ScopeColumns = Pick<ScopeRow, 'name' | 'description'>

export const {
  insert: insertScope,
  keyShare: lockScopes,
  update: updateScope,
  delete: deleteScope,
} = rowsOf<ScopeRow, ScopeColumns & Pick<ScopeRow, 'resource_id'>>('scopes')

/** The permission of this resource, which stays as it is until the transaction ends. */
export const lockScope = (trx: Knex, resourceId: string, id: string): Promise<ScopeRow | undefined> =>
  trx<ScopeRow>('scopes').where({ id, resource_id: resourceId }).forNoKeyUpdate().first()

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
