import type { Knex } from 'knex'
import type { ManagementDependencies } from '../../../base/dependencies.ts'
import { notFound, requireAll, unknownId } from '../../../base/errors/not-found.ts'
import { problem } from '../../../base/errors/problems.ts'
import { managementScopesAmong } from '../../../base/management-scope-store.ts'
import type { Mutation } from '../../../base/mutate.ts'
import type { OperationContext } from '../../../base/route.ts'
import { lockOrganizationRole } from './organization-role-store.ts'
import { addScopes, lockScopesOf, removeScopes, type ScopeKind, scopeIdsOf } from './role-scope-store.ts'

/**
 * Which permissions an organization role carries. Changes of those inside organizations are events; changes of those of
 * API resources are not. The Management API's own are refused, whoever asks: organizations are no way into it.
 */
export const roleScopeOperations = ({ mutate, indicators }: Pick<ManagementDependencies, 'mutate' | 'indicators'>) => {
  /** Runs `work` with the role locked; it answers how many permissions it added and removed. */
  const change = (
    context: OperationContext,
    kind: ScopeKind,
    roleId: string,
    work: (mutation: Mutation) => Promise<number>,
  ): Promise<void> =>
    mutate(context, async (mutation) => {
      if ((await lockOrganizationRole(mutation.trx, roleId)) === undefined) throw unknownId(roleId)
      const changed = await work(mutation)
      if (changed === 0 || kind === 'resource') return
      await mutation.record({
        type: 'OrganizationRole.Scopes.Updated',
        entity: { kind: 'organization-role', id: roleId },
        data: null,
        extras: { organizationRoleId: roleId },
      })
    })

  return {
    /** Those that the role carries already are left alone. */
    add: (context: OperationContext, kind: ScopeKind, roleId: string, ids: readonly string[]) =>
      change(context, kind, roleId, async ({ trx }) => {
        await acceptScopes(trx, kind, ids, indicators)
        return addScopes(trx, kind, roleId, ids)
      }),

    /** The role then carries exactly these. */
    set: (context: OperationContext, kind: ScopeKind, roleId: string, ids: readonly string[]) =>
      change(context, kind, roleId, async ({ trx }) => {
        await acceptScopes(trx, kind, ids, indicators)
        const wanted = new Set(ids)
        const superfluous = (await scopeIdsOf(trx, kind, roleId)).filter((id) => !wanted.has(id))
        const removed = await removeScopes(trx, kind, roleId, superfluous)
        return removed + (await addScopes(trx, kind, roleId, ids))
      }),

    /** Throws 404 `entity.not_found` when the role does not carry it. */
    remove: (context: OperationContext, kind: ScopeKind, roleId: string, id: string) =>
      change(context, kind, roleId, async ({ trx }) => {
        const removed = await removeScopes(trx, kind, roleId, [id])
        if (removed === 0) throw notFound(id)
        return removed
      }),
  }
}

/**
 * These may stand on a role, and cannot vanish meanwhile. Throws 422 for unknown ones, 400 for those of the Management
 * API.
 */
export const acceptScopes = async (
  trx: Knex,
  kind: ScopeKind,
  ids: readonly string[],
  indicators: readonly string[],
): Promise<void> => {
  if (ids.length === 0) return
  requireAll(ids, await lockScopesOf(trx, kind, ids))
  if (kind === 'organization') return
  if ((await managementScopesAmong(trx, indicators, ids)).length > 0) {
    throw problem('role.management_api_scopes_not_assignable_to_user_role', {
      detail: 'An organization role never carries permissions of the Management API.',
    })
  }
}
