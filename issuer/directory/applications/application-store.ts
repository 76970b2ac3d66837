import type { Knex } from 'knex'
import { type Listed, listed, type Page } from '../../base/lists/list-store.ts'
import { matching } from '../../base/lists/matching-store.ts'
import type { Search } from '../../base/lists/search.ts'
import { rowsOf } from '../../base/rows-store.ts'
import type { ApplicationRow, ApplicationType } from './application.ts'

export type ApplicationColumns = Omit<ApplicationRow, 'id' | 'created_at'>

export const {
  insert: insertApplication,
  find: findApplication,
  lock: lockApplication,
  update: updateApplication,
  delete: deleteApplication,
} = rowsOf<ApplicationRow, ApplicationColumns>('applications', {
  json: ['oidc_client_metadata', 'custom_client_metadata', 'custom_data'],
})

/** Those of `ids` that exist; they stay as they are until the transaction ends. */
export const lockApplications = (trx: Knex, ids: readonly string[]): Promise<ApplicationRow[]> =>
  trx<ApplicationRow>('applications').whereIn('id', ids).orderBy('id').forNoKeyUpdate()

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
