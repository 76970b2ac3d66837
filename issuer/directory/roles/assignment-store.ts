import type { Knex } from 'knex'
import { queryOf, statement, type Transaction } from '../../../platform/database/database.ts'
import type { RoleType } from './role.ts'

/**
 * Who has which role: users through `user_roles`, applications through `application_roles`. The two tables are used
 * alike.
 */
const holders = {
  user: { table: 'user_roles', column: 'user_id' },
  application: { table: 'application_roles', column: 'application_id' },
} as const

export type HolderKind = keyof typeof holders

export interface Assignment {
  holderId: string
  roleId: string
}

const row = (kind: HolderKind, { holderId, roleId }: Assignment) => ({
  [holders[kind].column]: holderId,
  role_id: roleId,
})

/** Violates `user_roles_once` or `application_roles_once` when one is there already. */
export const assignRoles = async (trx: Knex, kind: HolderKind, assignments: readonly Assignment[]): Promise<void> => {
  if (assignments.length === 0) return
  await trx(holders[kind].table).insert(assignments.map((assignment) => row(kind, assignment)))
}

/** The same, leaving out those that are there; answers the ids of the roles that were added. */
export const assignMissingRoles = async (
  trx: Knex,
  kind: HolderKind,
  assignments: readonly Assignment[],
): Promise<string[]> => {
  if (assignments.length === 0) return []
  const added = await trx(holders[kind].table)
    .insert(assignments.map((assignment) => row(kind, assignment)))
    .onConflict()
    .ignore()
    .returning('role_id')
  return added.map(({ role_id }: { role_id: string }) => role_id)
}

export const unassignRoles = async (trx: Knex, kind: HolderKind, holderId: string, roleIds: readonly string[]) => {
  if (roleIds.length === 0) return 0
  const { table, column } = holders[kind]
  return trx(table).where(column, holderId).whereIn('role_id', roleIds).delete()
}

export const roleIdsOf = async (trx: Knex, kind: HolderKind, holderId: string): Promise<string[]> => {
  const { table, column } = holders[kind]
  return (await trx(table).where(column, holderId).orderBy('role_id').select('role_id')).map(({ role_id }) => role_id)
}

/** Those of `holderIds` that have the role. */
export const holdersOf = async (trx: Knex, kind: HolderKind, roleId: string, holderIds: readonly string[]) => {
  const { table, column } = holders[kind]
  const rows = await trx(table).where({ role_id: roleId }).whereIn(column, holderIds).select({ holder: column })
  return rows.map(({ holder }) => holder as string)
}

const userType: RoleType = 'User'

const defaultRoles = statement(
  'user-default-roles',
  `INSERT INTO user_roles (user_id, role_id)
   SELECT $1, id FROM roles WHERE is_default AND type = $2 ORDER BY id FOR KEY SHARE`,
)

/** Gives a new user the default user roles. That alone is no event. */
export const assignDefaultRoles = async (trx: Transaction, userId: string): Promise<void> => {
  await queryOf(trx)(defaultRoles, [userId, userType])
}
