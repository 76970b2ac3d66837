import { newId } from '../../../../platform/ids.ts'
import { changesOf } from '../../../base/change.ts'
import type { ManagementDependencies } from '../../../base/dependencies.ts'
import { notFound, unknownId } from '../../../base/errors/not-found.ts'
import { problem } from '../../../base/errors/problems.ts'
import type { OperationContext } from '../../../base/route.ts'
import { toScope } from '../../resources/scope.ts'
import { toOrganizationScope } from '../scopes/organization-scope.ts'
import {
  type NewOrganizationRole,
  type OrganizationRole,
  type OrganizationRolePatch,
  toOrganizationRole,
} from './organization-role.ts'
import {
  deleteOrganizationRole,
  findOrganizationRole,
  insertOrganizationRole,
  isHeld,
  lockOrganizationRole,
  type OrganizationRoleColumns,
  updateOrganizationRole,
} from './organization-role-store.ts'
import { acceptScopes } from './role-scope-operations.ts'
import { addScopes, listScopes } from './role-scope-store.ts'

/**
 * Every change of an organization role, with its events. What it carries: `role-scope-operations.ts`; who has it:
 * `members/member-roles.ts`.
 */
export const organizationRoleOperations = ({
  database: { knex },
  mutate,
  indicators,
}: Pick<ManagementDependencies, 'database' | 'mutate' | 'indicators'>) => ({
  async get(id: string): Promise<OrganizationRole> {
    const row = await findOrganizationRole(knex, id)
    if (row === undefined) throw unknownId(id)
    return toOrganizationRole(row)
  },

  create: (
    context: OperationContext,
    { organizationScopeIds, resourceScopeIds, ...columns }: NewOrganizationRole,
  ): Promise<OrganizationRole> =>
    mutate(context, async ({ trx, record }) => {
      await acceptScopes(trx, 'organization', organizationScopeIds, indicators)
      await acceptScopes(trx, 'resource', resourceScopeIds, indicators)
      const created = toOrganizationRole(await insertOrganizationRole(trx, { id: newId(), ...columns }))
      const { id } = created
      await addScopes(trx, 'organization', id, organizationScopeIds)
      await addScopes(trx, 'resource', id, resourceScopeIds)
      await record({ type: 'OrganizationRole.Created', entity: entity(id), data: created })
      if (organizationScopeIds.length + resourceScopeIds.length > 0) {
        const inOrganizations = await listScopes(trx, 'organization', id)
        const ofResources = await listScopes(trx, 'resource', id)
        const data = [...inOrganizations.rows.map(toOrganizationScope), ...ofResources.rows.map(toScope)]
        await record({
          type: 'OrganizationRole.Scopes.Updated',
          entity: entity(id),
          data,
          extras: { organizationRoleId: id },
        })
      }
      return created
    }),

  update: (context: OperationContext, id: string, patch: OrganizationRolePatch): Promise<OrganizationRole> =>
    mutate(context, async ({ trx, record }) => {
      const row = await lockOrganizationRole(trx, id)
      if (row === undefined) throw unknownId(id)
      const changes = changesOf<OrganizationRoleColumns>(row, patch as Partial<OrganizationRoleColumns>)
      if (changes === undefined) return toOrganizationRole(row)
      if (changes.type !== undefined && (await isHeld(trx, id))) {
        throw problem('entity.db_constraint_violated', { detail: 'Somebody has this role, so its type stays.' })
      }
      const updated = toOrganizationRole(await updateOrganizationRole(trx, id, changes))
      await record({ type: 'OrganizationRole.Data.Updated', entity: entity(id), data: updated })
      return updated
    }),

  delete: (context: OperationContext, id: string): Promise<void> =>
    mutate(context, async ({ trx, record }) => {
      if ((await deleteOrganizationRole(trx, id)) === 0) throw notFound(id)
      await record({ type: 'OrganizationRole.Deleted', entity: entity(id), data: null })
    }),
})

const entity = (id: string) => ({ kind: 'organization-role' as const, id })
