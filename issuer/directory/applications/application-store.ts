import type { Knex } from 'knex'
import type { Page } from '../../base/lists/list-store.ts'
import { type Listed, listed, matching } from '../../base/lists/list-store.ts'
import type { Search } from '../../base/lists/search.ts'
import type { ApplicationRow, ApplicationType } from './application.ts'

export type ApplicationColumns = Omit<ApplicationRow, 'id' | 'created_at'>

const jsonColumns = ['oidc_client_metadata', 'custom_client_metadata', 'custom_data'] as const

const encoded = (columns: Partial<ApplicationColumns>): Record<string, unknown> => {
  const values: Record<string, unknown> = { ...columns }
  for (const column of jsonColumns) if (column in values) values[column] = JSON.stringify(values[column])
  return values
}

export const insertApplication = async (
  trx: Knex,
  { id, ...columns }: ApplicationColumns & { id: string },
): Promise<ApplicationRow> => {
  const [row] = await trx<ApplicationRow>('applications')
    .insert({ id, ...encoded(columns) } as never)
    .returning('*')
  return row as ApplicationRow
}

export const findApplication = (knex: Knex, id: string): Promise<ApplicationRow | undefined> =>
  knex<ApplicationRow>('applications').where({ id }).first()

/** The application, which stays as it is until the transaction ends. */
export const lockApplication = (trx: Knex, id: string): Promise<ApplicationRow | undefined> =>
  trx<ApplicationRow>('applications').where({ id }).forNoKeyUpdate().first()

/** Those of `ids` that exist; they stay as they are until the transaction ends. */
export const lockApplications = (trx: Knex, ids: readonly string[]): Promise<ApplicationRow[]> =>
  trx<ApplicationRow>('applications').whereIn('id', ids).orderBy('id').forNoKeyUpdate()

export const updateApplication = async (
  trx: Knex,
  id: string,
  columns: Partial<ApplicationColumns>,
): Promise<ApplicationRow> => {
  const [row] = await trx<ApplicationRow>('applications')
    .where({ id })
    .update(encoded(columns) as never)
    .returning('*')
  return row as ApplicationRow
}

export const deleteApplication = (trx: Knex, id: string): Promise<number> =>
  trx<ApplicationRow>('applications').where({ id }).delete()

export interface ApplicationFilter {
  search: Search | undefined
  types?: readonly ApplicationType[] | undefined
  isThirdParty?: boolean | undefined
  roleId?: string | undefined
  excludeRoleId?: string | undefined
  excludeOrganizationId?: string | undefined
}

const searchColumns: Record<string, string> = {
  id: 'applications.id',
  name: 'applications.name',
  description: 'applications.description',
}

/** Newest first. */
export const listApplications = (
  knex: Knex,
  filter: ApplicationFilter,
  page: Page | undefined,
): Promise<Listed<ApplicationRow>> => {
  const query = knex<ApplicationRow>('applications')
    .select('applications.*')
    .orderBy([{ column: 'applications.created_at', order: 'desc' }, 'applications.id'])
  const holding = (roleId: string) =>
    knex('application_roles').where({ role_id: roleId }).whereRaw('application_roles.application_id = applications.id')
  if (filter.types !== undefined) query.whereIn('applications.type', filter.types)
  if (filter.isThirdParty !== undefined) query.where('applications.is_third_party', filter.isThirdParty)
  if (filter.roleId !== undefined) query.whereExists(holding(filter.roleId))
  if (filter.excludeRoleId !== undefined) query.whereNotExists(holding(filter.excludeRoleId))
  if (filter.excludeOrganizationId !== undefined) {
    query.whereNotExists(
      knex('organization_applications')
        .where({ organization_id: filter.excludeOrganizationId })
        .whereRaw('organization_applications.application_id = applications.id'),
    )
  }
  matching(query, filter.search, searchColumns)
  return listed(query, page)
}
