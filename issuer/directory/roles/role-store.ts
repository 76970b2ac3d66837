import type { Knex } from 'knex'
import { type Listed, listed, type Page } from '../../base/lists/list-store.ts'
import { matching } from '../../base/lists/matching-store.ts'
import type { Search } from '../../base/lists/search.ts'
import { rowsOf } from '../../base/rows-store.ts'
import type { ListedRoleRow, RoleRow, RoleType } from './role.ts'

export type RoleColumns = Pick<RoleRow, 'name' | 'description' | 'type' | 'is_default'>

export const {
  insert: insertRole,
  find: findRole,
  lock: lockRole,
  update: updateRole,
  delete: deleteRole,
  keyShare: lockRoles,
} = rowsOf<RoleRow, RoleColumns>('roles')

export interface RoleFilter {
  search: Search | undefined
  type?: RoleType | undefined
  /** Only roles that this user or application has. */
  userId?: string | undefined
  applicationId?: string | undefined
  excludeUserId?: string | undefined
  excludeApplicationId?: string | undefined
  /** Only roles that carry this permission. */
  scopeId?: string | undefined
}

const searchColumns: Record<string, string> = {
  id: 'roles.id',
  name: 'roles.name',
  description: 'roles.description',
}

const filtered = (knex: Knex, filter: RoleFilter): Knex.QueryBuilder => {
  const query = knex('roles')
  const ofUser = (id: string) => knex('user_roles').where({ user_id: id }).whereRaw('user_roles.role_id = roles.id')
  const ofApplication = (id: string) =>
    knex('application_roles').where({ application_id: id }).whereRaw('application_roles.role_id = roles.id')
  if (filter.type !== undefined) query.where('roles.type', filter.type)
  if (filter.userId !== undefined) query.whereExists(ofUser(filter.userId))
  if (filter.applicationId !== undefined) query.whereExists(ofApplication(filter.applicationId))
  if (filter.excludeUserId !== undefined) query.whereNotExists(ofUser(filter.excludeUserId))
  if (filter.excludeApplicationId !== undefined) query.whereNotExists(ofApplication(filter.excludeApplicationId))
  if (filter.scopeId !== undefined) {
    const carried = knex('role_scopes').where({ scope_id: filter.scopeId }).whereRaw('role_scopes.role_id = roles.id')
    query.whereExists(carried)
  }
  matching(query, filter.search, searchColumns)
  return query
}

const newestFirst = [
  { column: 'roles.created_at', order: 'desc' },
  { column: 'roles.id', order: 'asc' },
] as const

export const listRoles = (knex: Knex, filter: RoleFilter, page: Page | undefined): Promise<Listed<RoleRow>> =>
  listed(filtered(knex, filter).select('roles.*'), page, { order: newestFirst })

const holders = `
  roles.*,
  (SELECT count(*) FROM user_roles WHERE role_id = roles.id) AS users_count,
  (SELECT coalesce(json_agg(featured), '[]')
     FROM (SELECT users.id, users.name, users.avatar FROM user_roles JOIN users ON users.id = user_id
            WHERE role_id = roles.id ORDER BY user_id LIMIT 3) featured) AS featured_users,
  (SELECT count(*) FROM application_roles WHERE role_id = roles.id) AS applications_count,
  (SELECT coalesce(json_agg(featured), '[]')
     FROM (SELECT applications.id, applications.name, applications.type
             FROM application_roles JOIN applications ON applications.id = application_id
            WHERE role_id = roles.id ORDER BY application_id LIMIT 3) featured) AS featured_applications`

/** The same with the holders of each role. */
export const listRolesWithHolders = (
  knex: Knex,
  filter: RoleFilter,
  page: Page | undefined,
): Promise<Listed<ListedRoleRow>> =>
  listed(filtered(knex, filter).select(knex.raw(holders)), page, { order: newestFirst })
