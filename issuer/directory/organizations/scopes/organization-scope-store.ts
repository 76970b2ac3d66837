import type { Knex } from 'knex'
import { keywordSearch } from '../../../base/lists/keyword.ts'
import { type Listed, listed, type Page } from '../../../base/lists/list-store.ts'
import { matching } from '../../../base/lists/matching-store.ts'
import { rowsOf } from '../../../base/rows-store.ts'
import type { OrganizationScopeRow } from './organization-scope.ts'

export type OrganizationScopeColumns = Pick<OrganizationScopeRow, 'name' | 'description'>

export const {
  insert: insertOrganizationScope,
  find: findOrganizationScope,
  lock: lockOrganizationScope,
  update: updateOrganizationScope,
  delete: deleteOrganizationScope,
  keyShare: lockOrganizationScopes,
} = rowsOf<OrganizationScopeRow, OrganizationScopeColumns>('organization_scopes')

const searchColumns: Record<string, string> = { id: 'id', name: 'name', description: 'description' }

/** In the order of their making. */
export const listOrganizationScopes = (
  knex: Knex,
  q: string | undefined,
  page: Page | undefined,
): Promise<Listed<OrganizationScopeRow>> => {
  const query = knex<OrganizationScopeRow>('organization_scopes').select('*').orderBy(['created_at', 'id'])
  matching(query, keywordSearch(q, Object.keys(searchColumns)), searchColumns)
  return listed(query, page)
}
