import type { Knex } from 'knex'
import type { ManagementDependencies } from '../../../base/dependencies.ts'
import { notFound, requireAll, unknownId, unknownRelated } from '../../../base/errors/not-found.ts'
import { problem } from '../../../base/errors/problems.ts'
import type { Page } from '../../../base/lists/list-store.ts'
import type { Caller, OperationContext } from '../../../base/route.ts'
import type { RoleType } from '../../roles/role.ts'
import { findOrganization } from '../organization-store.ts'
import { toOrganizationRole } from '../roles/organization-role.ts'
import { shareOrganizationRoles } from '../roles/organization-role-store.ts'
import { toOrganizationScope } from '../scopes/organization-scope.ts'
import {
  addMemberRoles,
  listRolesOfMember,
  listScopesOfMember,
  type Member,
  removeMemberRoles,
  roleIdsOfMember,
} from './member-role-store.ts'
import { isMember, lockMembers, type MemberKind } from './member-store.ts'
import { refuseEscalationOf } from './members.ts'

const roleTypes: Record<MemberKind, RoleType> = { user: 'User', application: 'MachineToMachine' }

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
  const requireMember = async ({ kind, organizationId, id }: Member) => {
    if ((await findOrganization(knex, organizationId)) === undefined) throw unknownId(organizationId)
    if (!(await isMember(knex, kind, organizationId, id))) throw notAllMembers([id])
  }

  /** The members, whose roles nobody else changes meanwhile. */
  const lock = async (trx: Knex, caller: Caller, kind: MemberKind, organizationId: string, ids: readonly string[]) => {
    if ((await findOrganization(trx, organizationId)) === undefined) throw unknownRelated([organizationId])
    const found = new Set((await lockMembers(trx, kind, organizationId, ids)).map(({ id }) => id))
    const others = ids.filter((id) => !found.has(id))
    if (others.length > 0) throw notAllMembers(others)
    if (kind === 'application') await refuseEscalationOf(trx, caller, ids, indicators)
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

    /** All of these members then have these roles too. Answers the ids of the roles, those that they had included. */
    add: (
      context: OperationContext,
      kind: MemberKind,
      organizationId: string,
      ids: readonly string[],
      named: NamedRoles,
    ): Promise<string[]> =>
      mutate(context, async ({ trx }) => {
        await lock(trx, context.caller, kind, organizationId, ids)
        const roleIds = await acceptRoles(trx, kind, named)
        await addMemberRoles(trx, kind, organizationId, ids, roleIds)
        return roleIds
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

const notAllMembers = (ids: readonly string[]) => problem('organization.require_membership', { data: { ids } })

/**
 * The ids of the roles, which stay as they are meanwhile: first those that were named by id, then those by name, each
 * once. Throws 422 for unknown ones and those of the wrong type.
 */
const acceptRoles = async (
  trx: Knex,
  kind: MemberKind,
  { organizationRoleIds, organizationRoleNames }: NamedRoles,
): Promise<string[]> => {
  const roles = await shareOrganizationRoles(trx, organizationRoleIds, organizationRoleNames)
  const idsByName = new Map(roles.map(({ id, name }) => [name, id]))
  const names = organizationRoleNames.filter((name) => !idsByName.has(name))
  if (names.length > 0) throw problem('organization.role_names_not_found', { data: { names } })
  requireAll(organizationRoleIds, roles)
  const wrong = roles.filter(({ type }) => type !== roleTypes[kind])
  if (wrong.length > 0) {
    throw problem('entity.db_constraint_violated', {
      detail: 'User roles are for users, machine-to-machine roles for applications.',
      data: { ids: wrong.map(({ id }) => id) },
    })
  }
  return [...new Set([...organizationRoleIds, ...organizationRoleNames.map((name) => idsByName.get(name)!)])]
}
