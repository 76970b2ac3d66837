import type { Knex } from 'knex'
import { refuseEscalation } from '../../base/authorization.ts'
import type { ManagementDependencies } from '../../base/dependencies.ts'
import { type ProblemCode, problem } from '../../base/errors/problems.ts'
import { managementScopesOfApplications, managementScopesOfRoles } from '../../base/management-scope-store.ts'
import type { Caller, OperationContext } from '../../base/route.ts'
import { lockApplications } from '../applications/application-store.ts'
import {
  assignMissingRoles,
  assignRoles,
  type HolderKind,
  holdersOf,
  roleIdsOf,
  unassignRoles,
} from '../roles/assignment-store.ts'
import { unknownRole } from '../roles/operations.ts'
import type { RoleRow, RoleType } from '../roles/role.ts'
import { lockRoles } from '../roles/role-store.ts'
import { lockUserIds } from '../users/user-store.ts'

interface Kind {
  roleType: RoleType
  /** From the holder's side: a role is not for this kind of holder. */
  wrongRole: ProblemCode
  /** From the role's side: the holder has it already. */
  holderExists: ProblemCode
  /** Locks the holders, so that who sets their roles takes turns; throws when one is unknown or cannot have roles. */
  lock(trx: Knex, ids: readonly string[]): Promise<void>
}

const kinds: Record<HolderKind, Kind> = {
  user: {
    roleType: 'User',
    wrongRole: 'user.invalid_role_type',
    holderExists: 'role.user_exists',
    async lock(trx, ids) {
      const known = await lockUserIds(trx, ids)
      refuseUnknown(ids.filter((id) => !known.has(id)))
    },
  },
  application: {
    roleType: 'MachineToMachine',
    wrongRole: 'application.invalid_role_type',
    holderExists: 'role.application_exists',
    async lock(trx, ids) {
      const rows = await lockApplications(trx, ids)
      refuseUnknown(ids.filter((id) => !rows.some((row) => row.id === id)))
      if (rows.some(({ type }) => type !== 'MachineToMachine')) throw problem('application.invalid_type')
    },
  },
}

const refuseUnknown = (ids: readonly string[]) => {
  if (ids.length > 0) throw problem('entity.not_found', { data: { id: ids[0], ids } })
}

/** Who has which role, from both sides, for users and machine-to-machine applications alike. These emit no events. */
export const assignmentOperations = ({ mutate, indicators }: Pick<ManagementDependencies, 'mutate' | 'indicators'>) => {
  const refuseEscalationBy = (
    trx: Knex,
    caller: Caller,
    kind: HolderKind,
    holders: readonly string[],
    roles: readonly string[],
  ) =>
    refuseEscalation(caller, async () => [
      ...(await managementScopesOfRoles(trx, indicators, roles)),
      ...(kind === 'application' ? await managementScopesOfApplications(trx, indicators, holders) : []),
    ])

  /**
   * The roles, which cannot vanish meanwhile. Throws 404 for an unknown one, 422 `wrongRole` for one of the wrong type.
   */
  const acceptRoles = async (
    trx: Knex,
    kind: HolderKind,
    roleIds: readonly string[],
    wrongRole = kinds[kind].wrongRole,
  ): Promise<RoleRow[]> => {
    const roles = await lockRoles(trx, roleIds)
    const unknown = roleIds.find((id) => !roles.some((role) => role.id === id))
    if (unknown !== undefined) throw unknownRole(unknown)
    const wrong = roles.filter(({ type }) => type !== kinds[kind].roleType)
    if (wrong.length > 0) throw problem(wrongRole, { data: { roleIds: wrong.map(({ id }) => id) } })
    return roles
  }

  return {
    /** From the role's side: nobody may have it yet. */
    addHolders: (context: OperationContext, kind: HolderKind, roleId: string, holderIds: readonly string[]) =>
      mutate(context, async ({ trx }) => {
        await acceptRoles(trx, kind, [roleId], 'entity.db_constraint_violated')
        await kinds[kind].lock(trx, holderIds)
        await refuseEscalationBy(trx, context.caller, kind, holderIds, [roleId])
        const existing = await holdersOf(trx, kind, roleId, holderIds)
        if (existing.length > 0) throw problem(kinds[kind].holderExists, { data: { ids: existing } })
        await assignRoles(
          trx,
          kind,
          holderIds.map((holderId) => ({ holderId, roleId })),
        )
      }),

    /** From the holder's side. Answers the ids of the roles that were added; existing ones are left alone. */
    addRoles: (context: OperationContext, kind: HolderKind, holderId: string, roleIds: readonly string[]) =>
      mutate(context, async ({ trx }) => {
        await kinds[kind].lock(trx, [holderId])
        await acceptRoles(trx, kind, roleIds)
        await refuseEscalationBy(trx, context.caller, kind, [holderId], roleIds)
        return assignMissingRoles(
          trx,
          kind,
          roleIds.map((roleId) => ({ holderId, roleId })),
        )
      }),

    /** The holder then has exactly these. */
    setRoles: (context: OperationContext, kind: HolderKind, holderId: string, roleIds: readonly string[]) =>
      mutate(context, async ({ trx }) => {
        await kinds[kind].lock(trx, [holderId])
        await acceptRoles(trx, kind, roleIds)
        const current = await roleIdsOf(trx, kind, holderId)
        const removed = current.filter((id) => !roleIds.includes(id))
        const added = roleIds.filter((id) => !current.includes(id))
        await refuseEscalationBy(trx, context.caller, kind, [holderId], [...removed, ...added])
        await unassignRoles(trx, kind, holderId, removed)
        await assignMissingRoles(
          trx,
          kind,
          added.map((roleId) => ({ holderId, roleId })),
        )
      }),

    /** From either side. Throws 404 `entity.not_found` when the holder does not have the role. */
    remove: (context: OperationContext, kind: HolderKind, holderId: string, roleId: string): Promise<void> =>
      mutate(context, async ({ trx }) => {
        await refuseEscalationBy(trx, context.caller, kind, [holderId], [roleId])
        const removed = await unassignRoles(trx, kind, holderId, [roleId])
        if (removed === 0) throw problem('entity.not_found')
      }),
  }
}
