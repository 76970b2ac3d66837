import { newId } from '../../../../platform/ids.ts'
import { changesOf } from '../../../base/change.ts'
import type { ManagementDependencies } from '../../../base/dependencies.ts'
import { notFound, unknownId } from '../../../base/errors/not-found.ts'
import type { OperationContext } from '../../../base/route.ts'
import {
  type NewOrganizationScope,
  type OrganizationScope,
  type OrganizationScopePatch,
  toOrganizationScope,
} from './organization-scope.ts'
import {
  deleteOrganizationScope,
  findOrganizationScope,
  insertOrganizationScope,
  lockOrganizationScope,
  type OrganizationScopeColumns,
  updateOrganizationScope,
} from './organization-scope-store.ts'

/** Every change of a permission inside organizations, with its event. */
export const organizationScopeOperations = ({
  database: { knex },
  mutate,
}: Pick<ManagementDependencies, 'database' | 'mutate'>) => ({
  async get(id: string): Promise<OrganizationScope> {
    const row = await findOrganizationScope(knex, id)
    if (row === undefined) throw unknownId(id)
    return toOrganizationScope(row)
  },

  create: (context: OperationContext, input: NewOrganizationScope): Promise<OrganizationScope> =>
    mutate(context, async ({ trx, record }) => {
      const created = toOrganizationScope(await insertOrganizationScope(trx, { id: newId(), ...input }))
      await record({ type: 'OrganizationScope.Created', entity: entity(created.id), data: created })
      return created
    }),

  update: (context: OperationContext, id: string, patch: OrganizationScopePatch): Promise<OrganizationScope> =>
    mutate(context, async ({ trx, record }) => {
      const row = await lockOrganizationScope(trx, id)
      if (row === undefined) throw unknownId(id)
      const changes = changesOf<OrganizationScopeColumns>(row, patch as Partial<OrganizationScopeColumns>)
      if (changes === undefined) return toOrganizationScope(row)
      const updated = toOrganizationScope(await updateOrganizationScope(trx, id, changes))
      await record({ type: 'OrganizationScope.Data.Updated', entity: entity(id), data: updated })
      return updated
    }),

  delete: (context: OperationContext, id: string): Promise<void> =>
    mutate(context, async ({ trx, record }) => {
      if ((await deleteOrganizationScope(trx, id)) === 0) throw notFound(id)
      await record({ type: 'OrganizationScope.Deleted', entity: entity(id), data: null })
    }),
})

const entity = (id: string) => ({ kind: 'organization-scope' as const, id })
