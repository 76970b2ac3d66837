import type { Knex } from 'knex'
import type { Beside, Page } from '../../base/lists/list-store.ts'
import { countOf, keptCount, type Listed, listed } from '../../base/lists/list-store.ts'
import { isAnsweredByText, matchingText, type SearchText, textMatches } from '../../base/lists/matching-store.ts'
import type { Search } from '../../base/lists/search.ts'
import { rowsOf } from '../../base/rows-store.ts'
import type { UserRow } from './user.ts'

/** A column per member of `UserRow` that callers may set. */
export type UserColumns = Partial<Omit<UserRow, 'id' | 'created_at' | 'updated_at' | 'password_changed_at'>>

const rows = rowsOf<
  UserRow,
  UserColumns &
    Partial<Record<'updated_at' | 'email_verified_at' | 'phone_verified_at' | 'password_changed_at', Knex.Raw>>
>('users', {
  json: ['profile', 'custom_data', 'identities'],
})

export const { find: findUser, lock: lockUser, delete: deleteUser } = rows

export const insertUser = (trx: Knex, row: UserColumns & { id: string }): Promise<UserRow> =>
  rows.insert(trx, { ...row, ...(row.password_digest && { password_changed_at: trx.fn.now() }) })

/** Addresses and numbers come from the Management API, whose caller answers for them: they count as verified. */
export const updateUser = (trx: Knex, id: string, columns: UserColumns): Promise<UserRow> =>
  rows.update(trx, id, {
    ...columns,
    ...(columns.primary_email && { email_verified_at: trx.fn.now() }),
    ...(columns.primary_phone && { phone_verified_at: trx.fn.now() }),
    updated_at: trx.fn.now(),
  })

/** Whether another user has one of these. */
export const isPhoneInUse = async (trx: Knex, numbers: readonly string[], userId: string): Promise<boolean> =>
  (await trx<UserRow>('users').whereIn('primary_phone', numbers).whereNot({ id: userId }).first('id')) !== undefined

/**
 * Replaces the digest that was read. False: it was changed meanwhile, by its owner or another upgrade, and what is
 * there now stays.
 */
export const replaceDigest = async (
  trx: Knex,
  id: string,
  read: string,
  columns: Required<Pick<UserColumns, 'password_digest' | 'password_algorithm'>>,
): Promise<boolean> =>
  (await trx<UserRow>('users')
    .where({ id, password_digest: read })
    .update(columns as never)) > 0

export interface UserFilter {
  search: Search | undefined
  excludeRoleId?: string | undefined
  roleId?: string | undefined
  excludeOrganizationId?: string | undefined
  /** Found ones are counted no further than to `foundCap`. */
  enableCap?: boolean | undefined
}

const searchColumns: Record<string, string> = {
  id: 'users.id',
  username: 'users.username',
  primaryEmail: 'users.primary_email',
  primaryPhone: 'users.primary_phone',
  name: 'users.name',
}

/** Migrations 0018 and 0050. */
export const userSearchText: SearchText = {
  table: 'user_search',
  key: 'user_search.user_id',
  body: 'user_search.body',
  columns: searchColumns,
  // People are looked up by these.
  folded: ['username', 'primaryEmail'],
  order: [
    { column: 'user_search.created_at', order: 'desc' },
    { column: 'user_search.user_id', order: 'asc' },
  ],
}

const holdersOf = (knex: Knex, roleId: string) => knex('user_roles').where({ role_id: roleId })

const membersOf = (knex: Knex, organizationId: string) =>
  knex('organization_users').where({ organization_id: organizationId })

const newestFirst = [
  { column: 'users.created_at', order: 'desc' },
  { column: 'users.id', order: 'asc' },
] as const

/** Where few letters find many, counting them costs more than all else, and nobody looks for somebody among so many. */
const foundCap = 1_000

/** `beside` is the id of one that is there. */
export const listUsers = (
  knex: Knex,
  filter: UserFilter,
  page: Page | undefined,
  beside?: Beside,
): Promise<Listed<UserRow>> => {
  const { search, roleId, excludeRoleId, excludeOrganizationId, enableCap = false } = filter
  const query = knex<UserRow>('users').select('users.*')
  const isHolder = (id: string) => holdersOf(knex, id).whereRaw('user_roles.user_id = users.id')
  const isMember = (id: string) => membersOf(knex, id).whereRaw('organization_users.user_id = users.id')
  if (roleId !== undefined) query.whereExists(isHolder(roleId))
  if (excludeRoleId !== undefined) query.whereNotExists(isHolder(excludeRoleId))
  if (excludeOrganizationId !== undefined) query.whereNotExists(isMember(excludeOrganizationId))
  if (search !== undefined) matchingText(query, search, 'users.id', userSearchText)
  const cap = enableCap ? foundCap : undefined
  const found = foundByTextAlone(knex, filter)
  const facts = found
    ? { ids: { query: found, order: userSearchText.order }, total: () => countOf(found, cap) }
    : { total: totalOf(knex, filter) }
  return listed(query, page, { order: newestFirst, cap, beside, ...facts })
}

/** Undefined where the filter needs more than the search text. */
const foundByTextAlone = (knex: Knex, { search, roleId, excludeRoleId, excludeOrganizationId }: UserFilter) => {
  const isAlone = roleId === undefined && excludeRoleId === undefined && excludeOrganizationId === undefined
  return isAlone && search !== undefined && isAnsweredByText(search, userSearchText)
    ? textMatches(knex.queryBuilder(), search, userSearchText)
    : undefined
}

/**
 * The holders of a role and the members of an organization are users, each once. So the number of the others is a
 * difference, and need not be counted.
 */
const totalOf = (knex: Knex, { search, roleId, excludeRoleId, excludeOrganizationId }: UserFilter) => {
  const left = [
    ...(excludeRoleId === undefined ? [] : [holdersOf(knex, excludeRoleId)]),
    ...(excludeOrganizationId === undefined ? [] : [membersOf(knex, excludeOrganizationId)]),
  ]
  if (search !== undefined || left.length > 1) return undefined
  if (roleId !== undefined) return left.length === 0 ? () => countOf(holdersOf(knex, roleId)) : undefined
  return async () => {
    const others = left[0] ? await countOf(left[0]) : { total: 0 }
    return { total: (await keptCount(knex, 'users')) - others.total }
  }
}

/** Which of `ids` exist; they stay as they are until the transaction ends. */
export const lockUserIds = async (trx: Knex, ids: readonly string[]): Promise<Set<string>> => {
  const rows = await trx<UserRow>('users').whereIn('id', ids).orderBy('id').forNoKeyUpdate().select('id')
  return new Set(rows.map(({ id }) => id))
}
