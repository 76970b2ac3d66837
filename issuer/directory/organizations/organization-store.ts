import type { Knex } from 'knex'
import { keywordSearch } from '../../base/lists/keyword.ts'
import { type Listed, listed, type Page } from '../../base/lists/list-store.ts'
import { matching } from '../../base/lists/matching-store.ts'
import { rowsOf } from '../../base/rows-store.ts'
import type { FeaturedOrganizationRow, OrganizationRow } from './organization.ts'

export type OrganizationColumns = Omit<OrganizationRow, 'id' | 'created_at'>

/** The lock of an organization also serialises changes of its members. */
export const {
  insert: insertOrganization,
  find: findOrganization,
  lock: lockOrganization,
  update: updateOrganization,
  delete: deleteOrganization,
} = rowsOf<OrganizationRow, OrganizationColumns>('organizations', { json: ['custom_data', 'color', 'branding'] })

/** Where the fields that `q` searches stand. */
export const searchColumns: Record<string, string> = {
  id: 'organizations.id',
  name: 'organizations.name',
  description: 'organizations.description',
}

const found = (knex: Knex, q: string | undefined): Knex.QueryBuilder => {
  const query = knex('organizations').orderBy([
    { column: 'organizations.created_at', order: 'desc' },
    'organizations.id',
  ])
  matching(query, keywordSearch(q, Object.keys(searchColumns)), searchColumns)
  return query
}

/** Newest first. */
export const listOrganizations = (
  knex: Knex,
  q: string | undefined,
  page: Page | undefined,
): Promise<Listed<OrganizationRow>> => listed(found(knex, q).select('organizations.*'), page)

const members = `
  organizations.*,
  (SELECT count(*) FROM organization_users WHERE organization_id = organizations.id) AS users_count,
  (SELECT coalesce(json_agg(featured), '[]')
     FROM (SELECT users.id, users.name, users.avatar FROM organization_users m JOIN users ON users.id = m.user_id
            WHERE m.organization_id = organizations.id ORDER BY m.created_at DESC, m.user_id LIMIT 3) featured) AS featured_users`

/** The same, each with the number of its users and the three that joined last. */
export const listFeaturedOrganizations = (
  knex: Knex,
  q: string | undefined,
  page: Page | undefined,
): Promise<Listed<FeaturedOrganizationRow>> => listed(found(knex, q).select(knex.raw(members)), page)
