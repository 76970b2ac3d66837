import type { Knex } from 'knex'
import type { ApplicationRow } from '../applications/application.ts'
import { type Listed, listed, matching } from '../management/list-store.ts'
import type { Page } from '../management/route.ts'
import type { UserRow } from '../users/user.ts'
import { searchColumns as userSearchColumns } from '../users/user-store.ts'
import { keywordSearch } from './keyword.ts'
import type { OrganizationRow } from './organization.ts'
import { searchColumns as organizationSearchColumns } from './organization-store.ts'

/** Who belongs to an organization, and the roles held there: users and applications, in tables that are used alike. */
export const memberTables = {
  user: {
    members: 'organization_users',
    column: 'user_id',
    roles: 'organization_user_roles',
    records: 'users',
    searchColumns: userSearchColumns,
  },
  application: {
    members: 'organization_applications',
    column: 'application_id',
    roles: 'organization_application_roles',
    records: 'applications',
    searchColumns: { id: 'applications.id', name: 'applications.name', description: 'applications.description' },
  },
} as const

export type MemberKind = keyof typeof memberTables
export interface MemberRow {
  user: UserRow
  application: ApplicationRow
}

/** The users or applications among `ids` that exist; they cannot be deleted before the transaction ends. */
export const shareRecords = <Kind extends MemberKind>(
  trx: Knex,
  kind: Kind,
  ids: readonly string[],
): Promise<MemberRow[Kind][]> => trx(memberTables[kind].records).whereIn('id', ids).orderBy('id').forKeyShare()

/** Leaves out those that are members; answers the ids of those that were added. */
export const addMembers = async (trx: Knex, kind: MemberKind, organizationId: string, ids: readonly string[]) => {
  if (ids.length === 0) return []
  const { members, column } = memberTables[kind]
  const added = await trx(members)
    .insert(ids.map((id) => ({ organization_id: organizationId, [column]: id })))
    .onConflict()
    .ignore()
    .returning(column)
  return added.map((row: Record<string, string>) => row[column]!)
}

/** Their roles in the organization go with them. Answers how many were removed. */
export const removeMembers = async (trx: Knex, kind: MemberKind, organizationId: string, ids: readonly string[]) => {
  if (ids.length === 0) return 0
  const { members, column } = memberTables[kind]
  return trx(members).where({ organization_id: organizationId }).whereIn(column, ids).delete()
}

export const memberIds = async (trx: Knex, kind: MemberKind, organizationId: string): Promise<string[]> => {
  const { members, column } = memberTables[kind]
  const rows = await trx(members).where({ organization_id: organizationId }).select({ id: column })
  return rows.map(({ id }) => id as string)
}

export const isMember = async (knex: Knex, kind: MemberKind, organizationId: string, id: string): Promise<boolean> => {
  const { members, column } = memberTables[kind]
  return (
    (await knex(members)
      .where({ organization_id: organizationId, [column]: id })
      .first()) !== undefined
  )
}

/** Those of `ids` that are members; they stay so until the transaction ends, and whoever changes their roles takes turns here. */
export const lockMembers = async (
  trx: Knex,
  kind: MemberKind,
  organizationId: string,
  ids: readonly string[],
): Promise<{ id: string }[]> => {
  const { members, column } = memberTables[kind]
  return trx(members)
    .where({ organization_id: organizationId })
    .whereIn(column, ids)
    .orderBy(column)
    .forNoKeyUpdate()
    .select({ id: column })
}

/** The roles of a member beside its row: `[{id, name}]`. */
const organizationRoles = (kind: MemberKind) => {
  const { members, column, roles } = memberTables[kind]
  return `(SELECT coalesce(json_agg(json_build_object('id', r.id, 'name', r.name) ORDER BY r.name), '[]')
     FROM ${roles} m JOIN organization_roles r ON r.id = m.organization_role_id
    WHERE m.organization_id = ${members}.organization_id AND m.${column} = ${members}.${column}) AS organization_roles`
}

export interface WithOrganizationRoles {
  organization_roles: { id: string; name: string }[]
}

/** Those who joined last first. Joined from the left, so that the records are not read to be counted. */
export const listMembers = <Kind extends MemberKind>(
  knex: Knex,
  kind: Kind,
  organizationId: string,
  q: string | undefined,
  page: Page | undefined,
): Promise<Listed<MemberRow[Kind] & WithOrganizationRoles>> => {
  const { members, column, records, searchColumns } = memberTables[kind]
  const query = knex(members)
    .leftJoin(records, `${records}.id`, `${members}.${column}`)
    .where(`${members}.organization_id`, organizationId)
    .orderBy([{ column: `${members}.created_at`, order: 'desc' }, `${members}.${column}`])
    .select(`${records}.*`, knex.raw(organizationRoles(kind)))
  matching(query, keywordSearch(q, Object.keys(searchColumns)), searchColumns)
  return listed(query, page)
}

/** The organizations of a user or an application, the last joined first. */
export const listOrganizationsOf = (
  knex: Knex,
  kind: MemberKind,
  id: string,
  q: string | undefined,
  page: Page | undefined,
): Promise<Listed<OrganizationRow & WithOrganizationRoles>> => {
  const { members, column } = memberTables[kind]
  const query = knex(members)
    .leftJoin('organizations', 'organizations.id', `${members}.organization_id`)
    .where(`${members}.${column}`, id)
    .orderBy([{ column: `${members}.created_at`, order: 'desc' }, `${members}.organization_id`])
    .select('organizations.*', knex.raw(organizationRoles(kind)))
  matching(query, keywordSearch(q, Object.keys(organizationSearchColumns)), organizationSearchColumns)
  return listed(query, page)
}
