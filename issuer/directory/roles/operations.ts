import type { Knex } from 'knex'
import { newId } from '../../../platform/ids.ts'
import { managementRoleNames, refuseEscalation } from '../../base/authorization.ts'
import { changesOf } from '../../base/change.ts'
import { isConsoleRole } from '../../base/console-roles.ts'
import type { ManagementDependencies } from '../../base/dependencies.ts'
import { notFound, requireFound } from '../../base/errors/not-found.ts'
import { problem } from '../../base/errors/problems.ts'
import { managementScopesAmong, managementScopesOfRoles } from '../../base/management-scope-store.ts'
import type { Caller, OperationContext } from '../../base/route.ts'
import { type Scope, type ScopeRow, toScope } from '../resources/scope.ts'
import { lockScopes } from '../resources/scope-store.ts'
import { type NewRole, type Role, type RolePatch, type RoleType, toRole } from './role.ts'
import { addScopes, listScopesOfRole, removeScope } from './role-scope-store.ts'
import { deleteRole, findRole, insertRole, lockRole, type RoleColumns, updateRole } from './role-store.ts'

/** Every change of a role and of the permissions it carries, with its events. Who has a role: `role-assignments/`. */
export const roleOperations = ({
  database: { knex },
  mutate,
  indicators,
}: Pick<ManagementDependencies, 'database' | 'mutate' | 'indicators'>) => {
  const refuseEscalationBy = (trx: Knex, caller: Caller, roleId: string) =>
    refuseEscalation(caller, () => managementScopesOfRoles(trx, indicators, [roleId]))

  /**
   * The permissions that are to stand on a role, which cannot vanish meanwhile. Throws 404, 403 and, for a user role,
   * 400.
   */
  const acceptScopes = async (trx: Knex, caller: Caller, type: RoleType, scopeIds: readonly string[]) => {
    const rows = await lockScopes(trx, scopeIds)
    const unknown = scopeIds.filter((id) => !rows.some((row) => row.id === id))
    if (unknown.length > 0) throw problem('entity.not_exists_with_id', { data: { id: unknown[0], ids: unknown } })
    const ofManagement = await managementScopesAmong(trx, indicators, scopeIds)
    await refuseEscalation(caller, async () => ofManagement)
    if (type === 'User' && ofManagement.length > 0) {
      throw problem('role.management_api_scopes_not_assignable_to_user_role')
    }
    return rows
  }

  return {
    async get(id: string): Promise<Role> {
      const row = requireFound(await findRole(knex, id), id)
      return toRole(row)
    },

    async create(context: OperationContext, input: NewRole): Promise<Role> {
      refuseReservedName(context.caller, input.name)
      return mutate(context, async ({ trx, record }) => {
        const scopes = await acceptScopes(trx, context.caller, input.type, input.scopeIds)
        const columns = {
          name: input.name,
          description: input.description,
          type: input.type,
          is_default: input.isDefault,
        }
        const created = toRole(await insertRole(trx, { id: newId(), ...columns }))
        await addScopes(trx, created.id, input.scopeIds)
        const entity = { kind: 'role' as const, id: created.id }
        await record({ type: 'Role.Created', entity, data: created })
        if (scopes.length > 0) {
          const data = scopes.sort(byAge).map(toScope)
          await record({ type: 'Role.Scopes.Updated', entity, data, extras: { roleId: created.id } })
        }
        return created
      })
    },

    async update(context: OperationContext, id: string, patch: RolePatch): Promise<Role> {
      if (patch.name !== undefined) refuseReservedName(context.caller, patch.name)
      return mutate(context, async ({ trx, record }) => {
        const row = await lockRole(trx, id)
        if (row === undefined) throw problem('entity.not_exists', { data: { id } })
        await refuseEscalationBy(trx, context.caller, id)
        // A default role would come to everybody.
        if (patch.isDefault) refuseConsoleRole(id)
        const columns = { name: patch.name, description: patch.description, is_default: patch.isDefault }
        const changes = changesOf<RoleColumns>(row, columns as Partial<RoleColumns>)
        if (changes === undefined) return toRole(row)
        const updated = toRole(await updateRole(trx, id, changes))
        await record({ type: 'Role.Data.Updated', entity: { kind: 'role', id }, data: updated })
        return updated
      })
    },

    delete: (context: OperationContext, id: string): Promise<void> =>
      mutate(context, async ({ trx, record }) => {
        requireFound(await lockRole(trx, id), id, notFound)
        await refuseEscalationBy(trx, context.caller, id)
        refuseConsoleRole(id)
        await deleteRole(trx, id)
        await record({ type: 'Role.Deleted', entity: { kind: 'role', id }, data: null })
      }),

    /** Answers all permissions that the role then carries. */
    addScopes: (context: OperationContext, id: string, scopeIds: readonly string[]): Promise<Scope[]> =>
      mutate(context, async ({ trx, record }) => {
        const row = requireFound(await lockRole(trx, id), id)
        await refuseEscalationBy(trx, context.caller, id)
        refuseConsoleRole(id)
        await acceptScopes(trx, context.caller, row.type, scopeIds)
        await addScopes(trx, id, scopeIds)
        const data = (await listScopesOfRole(trx, id)).map(toScope)
        await record({ type: 'Role.Scopes.Updated', entity: { kind: 'role', id }, data, extras: { roleId: id } })
        return data
      }),

    removeScope: (context: OperationContext, id: string, scopeId: string): Promise<void> =>
      mutate(context, async ({ trx, record }) => {
        requireFound(await lockRole(trx, id), id)
        await refuseEscalationBy(trx, context.caller, id)
        refuseConsoleRole(id)
        const removed = await removeScope(trx, id, scopeId)
        if (removed === 0) throw notFound(scopeId)
        await record({ type: 'Role.Scopes.Updated', entity: { kind: 'role', id }, data: null, extras: { roleId: id } })
      }),
  }
}

const refuseConsoleRole = (id: string) => {
  if (isConsoleRole(id)) throw problem('role.console_role_not_changeable', { data: { id } })
}

const refuseReservedName = (caller: Caller, name: string) => {
  if (name.startsWith('#internal:')) throw problem('role.internal_role_violation')
  const reserved: readonly string[] = Object.values(managementRoleNames)
  if (reserved.includes(name) && !caller.scopes.has('all')) {
    throw problem('auth.forbidden', { detail: 'This role name needs the scope all.', data: { scopes: ['all'] } })
  }
}

const byAge = (left: ScopeRow, right: ScopeRow) =>
  left.created_at.getTime() - right.created_at.getTime() || (left.id < right.id ? -1 : 1)
