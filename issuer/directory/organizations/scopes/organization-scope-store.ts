import type { Knex } from 'knex'
import { keywordSearch } from '../../../base/lists/keyword.ts'
import type { Page } from '../../../base/lists/list-store.ts'
import { type Listed, listed, matching } from '../../../base/lists/list-store.ts'
import type { OrganizationScopeRow } from './organization-scope.ts'

export type OrganizationScopeColumns = Pick<OrganizationScopeRow, 'name' | 'description'>

export const insertOrganizationScope = async (
  trx: Knex,
  scope: OrganizationScopeColumns & { id: string },
): Promise<OrganizationScopeRow> => {
  const [row] = await trx<OrganizationScopeRow>('organization_scopes').insert(scope).returning('*')
  return row as OrganizationScopeRow
}

export const findOrganizationScope = (knex: Knex, id: string): Promise<OrganizationScopeRow | undefined> =>
  knex<OrganizationScopeRow>('organization_scopes').where({ id }).first()

/** The permission, which stays as it is until the transaction ends. */
export const lockOrganizationScope = (trx: Knex, id: string): Promise<OrganizationScopeRow | undefined> =>
  trx<OrganizationScopeRow>('organization_scopes').where({ id }).forNoKeyUpdate().first()

/** Those of `ids` that exist; they cannot be deleted before the transaction ends. */
export const lockOrganizationScopes = (trx: Knex, ids: readonly string[]): Promise<OrganizationScopeRow[]> =>
  trx<OrganizationScopeRow>('organization_scopes').whereIn('id', ids).orderBy('id').forKeyShare()

export const updateOrganizationScope = async (
  trx: Knex,
  id: string,
  columns: Partial<OrganizationScopeColumns>,
): Promise<OrganizationScopeRow> => {
  const [row] = await trx<OrganizationScopeRow>('organization_scopes').where({ id }).update(columns).returning('*')
  return row as OrganizationScopeRow
}

export const deleteOrganizationScope = (trx: Knex, id: string): Promise<number> =>
  trx<OrganizationScopeRow>('organization_scopes').where({ id }).delete()

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
