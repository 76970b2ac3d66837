import type { Knex } from 'knex'
import { keywordSearch } from '../../base/lists/keyword.ts'
import type { Page } from '../../base/lists/list-store.ts'
import { type Listed, listed, matching } from '../../base/lists/list-store.ts'
import type { FeaturedOrganizationRow, OrganizationRow } from './organization.ts'

export type OrganizationColumns = Omit<OrganizationRow, 'id' | 'created_at'>

const jsonColumns = ['custom_data', 'color', 'branding'] as const

const encoded = (columns: Partial<OrganizationColumns>): Record<string, unknown> => {
  const values: Record<string, unknown> = { ...columns }
  for (const column of jsonColumns) if (column in values) values[column] = JSON.stringify(values[column])
  return values
}

export const insertOrganization = async (
  trx: Knex,
  { id, ...columns }: OrganizationColumns & { id: string },
): Promise<OrganizationRow> => {
  const [row] = await trx<OrganizationRow>('organizations')
    .insert({ id, ...encoded(columns) } as never)
    .returning('*')
  return row as OrganizationRow
}

export const findOrganization = (knex: Knex, id: string): Promise<OrganizationRow | undefined> =>
  knex<OrganizationRow>('organizations').where({ id }).first()

/** The organization, which stays as it is until the transaction ends; whoever changes its members takes turns here. */
export const lockOrganization = (trx: Knex, id: string): Promise<OrganizationRow | undefined> =>
  trx<OrganizationRow>('organizations').where({ id }).forNoKeyUpdate().first()

export const updateOrganization = async (
  trx: Knex,
  id: string,
  columns: Partial<OrganizationColumns>,
): Promise<OrganizationRow> => {
  const [row] = await trx<OrganizationRow>('organizations')
    .where({ id })
    .update(encoded(columns) as never)
    .returning('*')
  return row as OrganizationRow
}

export const deleteOrganization = (trx: Knex, id: string): Promise<number> =>
  trx<OrganizationRow>('organizations').where({ id }).delete()

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
