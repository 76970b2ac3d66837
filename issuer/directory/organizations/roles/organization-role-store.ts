import type { Knex } from 'knex'
import { keywordSearch } from '../../../base/lists/keyword.ts'
import { type Listed, listed, type Page } from '../../../base/lists/list-store.ts'
import { matching } from '../../../base/lists/matching-store.ts'
import { rowsOf } from '../../../base/rows-store.ts'
import type { ListedOrganizationRoleRow, OrganizationRoleRow } from './organization-role.ts'

export type OrganizationRoleColumns = Pick<OrganizationRoleRow, 'name' | 'description' | 'type'>

export const {
  insert: insertOrganizationRole,
  find: findOrganizationRole,
  lock: lockOrganizationRole,
  update: updateOrganizationRole,
  delete: deleteOrganizationRole,
} = rowsOf<OrganizationRoleRow, OrganizationRoleColumns>('organization_roles')

/** Those with one of these ids or names; neither deleted nor of another type before the transaction ends. */
export const shareOrganizationRoles = (
  trx: Knex,
  ids: readonly string[],
  names: readonly string[],
): Promise<OrganizationRoleRow[]> =>
  trx<OrganizationRoleRow>('organization_roles').whereIn('id', ids).orWhereIn('name', names).orderBy('id').forShare()

/** Whether a member of some organization has the role. */
export const isHeld = async (trx: Knex, id: string): Promise<boolean> => {
  for (const table of ['organization_user_roles', 'organization_application_roles']) {
    if ((await trx(table).where({ organization_role_id: id }).first()) !== undefined) return true
  }
  return false
}

const searchColumns: Record<string, string> = {
  id: 'organization_roles.id',
  name: 'organization_roles.name',
  description: 'organization_roles.description',
}

const carried = `
  organization_roles.*,
  (SELECT coalesce(json_agg(json_build_object('id', s.id, 'name', s.name) ORDER BY s.name), '[]')
     FROM organization_role_scopes rs JOIN organization_scopes s ON s.id = rs.organization_scope_id
    WHERE rs.organization_role_id = organization_roles.id) AS scopes,
  (SELECT coalesce(json_agg(json_build_object('id', s.id, 'name', s.name,
            'resource', json_build_object('id', r.id, 'name', r.name)) ORDER BY r.name, r.id, s.name), '[]')
     FROM organization_role_resource_scopes rs JOIN scopes s ON s.id = rs.scope_id JOIN resources r ON r.id = s.resource_id
    WHERE rs.organization_role_id = organization_roles.id) AS resource_scopes`

/** In the order of their making, each with the permissions it carries. */
export const listOrganizationRoles = (
  knex: Knex,
  q: string | undefined,
  page: Page | undefined,
): Promise<Listed<ListedOrganizationRoleRow>> => {
  const query = knex('organization_roles').select(knex.raw(carried)).orderBy(['created_at', 'id'])
  matching(query, keywordSearch(q, Object.keys(searchColumns)), searchColumns)
  return listed(query, page)
}
