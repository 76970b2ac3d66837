import type { Knex } from 'knex'
import { AppError, type ProblemCode } from '../../platform/problem.ts'
import type { ManagementDependencies } from '../management/dependencies.ts'
import type { Caller, OperationContext, Page } from '../management/route.ts'
import { type OrganizationRoleRow, toOrganizationRole } from '../organization-roles/organization-role.ts'
import { shareOrganizationRoles } from '../organization-roles/organization-role-store.ts'
import { toOrganizationScope } from '../organization-scopes/organization-scope.ts'
import type { RoleType } from '../roles/role.ts'
import {
  addMemberRoles,
  listRolesOfMember,
  listScopesOfMember,
  type Member,
  removeMemberRoles,
  roleIdsOfMember,
} from './member-role-store.ts'
import { isMember, lockMembers, type MemberKind } from './member-store.ts'
import { refuseClimbingOf } from './members.ts'
import { findOrganization } from './organization-store.ts'
import { notFound, unknownId, unknownRelated } from './unknown.ts'

const kinds: Record<MemberKind, { roleType: RoleType; wrongRole: ProblemCode }> = {
  user: { roleType: 'User', wrongRole: 'user.invalid_role_type' },
  application: { roleType: 'MachineToMachine', wrongRole: 'application.invalid_role_type' },
}

/** Roles as callers name them. */
export interface NamedRoles {
  organizationRoleIds: readonly string[]
  organizationRoleNames: readonly string[]
}

/** Which roles the members of an organization have there. Changes are no events; they show in the next token. */
export const memberRoleOperations = ({
  database: { knex },
  mutate,
  indicators,
}: Pick<ManagementDependencies, 'database' | 'mutate' | 'indicators'>) => {
  const requireOrganization = async (db: Knex, id: string) => {
    if ((await findOrganization(db, id)) === undefined) throw unknownId(id)
  }

  const requireMember = async (member: Member) => {
    await requireOrganization(knex, member.organizationId)
    if (!(await isMember(knex, member.kind, member.organizationId, member.id))) throw notAllMembers([member.id])
  }

  /** The members, whose roles nobody else changes meanwhile. */
  const lock = async (trx: Knex, caller: Caller, kind: MemberKind, organizationId: string, ids: readonly string[]) => {
    await requireOrganization(trx, organizationId)
    const found = new Set((await lockMembers(trx, kind, organizationId, ids)).map(({ id }) => id))
    const others = ids.filter((id) => !found.has(id))
    if (others.length > 0) throw notAllMembers(others)
    if (kind === 'application') await refuseClimbingOf(trx, caller, ids, indicators)
  }

  return {
    async list(member: Member, page: Page | undefined) {
      await requireMember(member)
      const { rows, total } = await listRolesOfMember(knex, member, page)
      return { rows: rows.map(toOrganizationRole), total }
    },

    async listScopes(member: Member) {
      await requireMember(member)
      return (await listScopesOfMember(knex, member)).map(toOrganizationScope)
    },

    /** All of these members then have these roles too. */
    add: (
      context: OperationContext,
      kind: MemberKind,
      organizationId: string,
      ids: readonly string[],
      named: NamedRoles,
    ): Promise<void> =>
      mutate(context, async ({ trx }) => {
        await lock(trx, context.caller, kind, organizationId, ids)
        await addMemberRoles(trx, kind, organizationId, ids, await acceptRoles(trx, kind, named))
      }),

    /** The member then has exactly these. */
    set: (context: OperationContext, member: Member, named: NamedRoles): Promise<void> =>
      mutate(context, async ({ trx }) => {
        const { kind, organizationId, id } = member
        await lock(trx, context.caller, kind, organizationId, [id])
        const roleIds = await acceptRoles(trx, kind, named)
        const superfluous = (await roleIdsOfMember(trx, member)).filter((roleId) => !roleIds.includes(roleId))
        await removeMemberRoles(trx, member, superfluous)
        await addMemberRoles(trx, kind, organizationId, [id], roleIds)
      }),

    /** Throws 404 `entity.not_found` when the member does not have it. */
    remove: (context: OperationContext, member: Member, roleId: string): Promise<void> =>
      mutate(context, async ({ trx }) => {
        await lock(trx, context.caller, member.kind, member.organizationId, [member.id])
        if ((await removeMemberRoles(trx, member, [roleId])) === 0) throw notFound(roleId)
      }),
  }
}

const notAllMembers = (ids: readonly string[]) => new AppError('organization.require_membership', { data: { ids } })

/** The ids of the roles, which stay as they are meanwhile. Throws 422 for unknown ones and those of the wrong type. */
const acceptRoles = async (
  trx: Knex,
  kind: MemberKind,
  { organizationRoleIds, organizationRoleNames }: NamedRoles,
): Promise<string[]> => {
  const roles = await shareOrganizationRoles(trx, organizationRoleIds, organizationRoleNames)
  const known = (member: 'id' | 'name') => new Set(roles.map((role: OrganizationRoleRow) => role[member]))
  const unknown = [
    ...organizationRoleIds.filter((id) => !known('id').has(id)),
    ...organizationRoleNames.filter((name) => !known('name').has(name)),
  ]
  if (unknown.length > 0) throw unknownRelated(unknown)
  const wrong = roles.filter(({ type }) => type !== kinds[kind].roleType)
  if (wrong.length > 0) throw new AppError(kinds[kind].wrongRole, { data: { ids: wrong.map(({ id }) => id) } })
  return roles.map(({ id }) => id)
}
