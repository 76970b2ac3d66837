import type { Knex } from 'knex'
import { keywordSearch } from '../../../base/lists/keyword.ts'
import { type Listed, listed, type Page } from '../../../base/lists/list-store.ts'
import { matching, matchingText } from '../../../base/lists/matching-store.ts'
import type { Search } from '../../../base/lists/search.ts'
import type { ApplicationRow } from '../../applications/application.ts'
import type { UserRow } from '../../users/user.ts'
import { userSearchText } from '../../users/user-store.ts'
import type { OrganizationRow } from '../organization.ts'
import { searchColumns as organizationSearchColumns } from '../organization-store.ts'

const applicationColumns = { id: 'applications.id', name: 'applications.name', description: 'applications.description' }

/** Who belongs to an organization, and the roles held there: users and applications, in tables that are used alike. */
export const memberTables = {
  user: {
    members: 'organization_users',
    column: 'user_id',
    roles: 'organization_user_roles',
    records: 'users',
    fields: Object.keys(userSearchText.columns),
    search: (query: Knex.QueryBuilder, search: Search) => matchingText(query, search, 'users.id', userSearchText),
  },
  application: {
    members: 'organization_applications',
    column: 'application_id',
    roles: 'organization_application_roles',
    records: 'applications',
    fields: Object.keys(applicationColumns),
    search: (query: Knex.QueryBuilder, search: Search) => matching(query, search, applicationColumns),
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

/** Its roles in the organization go with it. False when it was no member. */
export const removeMember = async (trx: Knex, kind: MemberKind, organizationId: string, id: string) => {
  const { members, column } = memberTables[kind]
  return (
    (await trx(members)
      .where({ organization_id: organizationId, [column]: id })
      .delete()) > 0
  )
}

/** Removes all but `ids`, however many; answers the ids of those that were removed. */
export const removeOtherMembers = async (
  trx: Knex,
  kind: MemberKind,
  organizationId: string,
  ids: readonly string[],
): Promise<string[]> => {
  const { members, column } = memberTables[kind]
  const removed = await trx(members)
    .where({ organization_id: organizationId })
    .whereRaw('?? <> ALL (?::text[])', [column, [...ids]])
    .delete()
    .returning(column)
  return removed.map((row: Record<string, string>) => row[column]!)
}

export const isMember = async (knex: Knex, kind: MemberKind, organizationId: string, id: string): Promise<boolean> => {
  const { members, column } = memberTables[kind]
  return (
    (await knex(members)
      .where({ organization_id: organizationId, [column]: id })
      .first()) !== undefined
  )
}

/**
 * Those of `ids` that are members. They stay members until the transaction ends, and their roles are changed by one
 * caller at a time.
 */
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

/** Those who joined last first. */
export const listMembers = <Kind extends MemberKind>(
  knex: Knex,
  kind: Kind,
  organizationId: string,
  q: string | undefined,
  page: Page | undefined,
): Promise<Listed<MemberRow[Kind] & WithOrganizationRoles>> => {
  const { members, column, records, fields, search } = memberTables[kind]
  const asked = keywordSearch(q, fields)
  return listMemberships(knex, kind, page, {
    of: { [`${members}.organization_id`]: organizationId },
    other: `${members}.${column}`,
    records,
    search: (query) => asked && search(query, asked),
  })
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
  return listMemberships(knex, kind, page, {
    of: { [`${members}.${column}`]: id },
    other: `${members}.organization_id`,
    records: 'organizations',
    search: (query) =>
      matching(query, keywordSearch(q, Object.keys(organizationSearchColumns)), organizationSearchColumns),
  })
}

interface Memberships {
  /** Whose. */
  of: Record<string, string>
  /** The column that says with whom, and the table where those are. */
  other: string
  records: string
  search(query: Knex.QueryBuilder): void
}

/**
 * First the page, from the index alone unless there is a search (joined from the left, `records` is not read then);
 * then what belongs to its rows. In one statement the roles of all members before the page would be gathered too.
 */
const listMemberships = async <Row>(
  knex: Knex,
  kind: MemberKind,
  page: Page | undefined,
  { of, other, records, search }: Memberships,
): Promise<Listed<Row>> => {
  const { members } = memberTables[kind]
  const memberships = () =>
    knex(members)
      .leftJoin(records, `${records}.id`, other)
      .where(of)
      .orderBy([{ column: `${members}.created_at`, order: 'desc' }, other])
  const found = memberships().select({ id: other })
  search(found)
  const { rows, total } = await listed<{ id: string }>(found, page)
  const ids = rows.map(({ id }) => id)
  const complete = memberships()
    .whereRaw('?? = ANY (?::text[])', [other, ids])
    .select(`${records}.*`, knex.raw(organizationRoles(kind)))
  return { rows: ids.length === 0 ? [] : ((await complete) as Row[]), total }
}
