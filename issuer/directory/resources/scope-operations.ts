import type { Knex } from 'knex'
import { newId } from '../../../platform/ids.ts'
import { changesOf } from '../../base/change.ts'
import type { ManagementDependencies } from '../../base/dependencies.ts'
import { problem } from '../../base/errors/problems.ts'
import type { Listed, Page } from '../../base/lists/list-store.ts'
import type { Search } from '../../base/lists/search.ts'
import type { OperationContext } from '../../base/route.ts'
import { isOfManagement, unknownResource } from './operations.ts'
import { findResource } from './resource-store.ts'
import { type NewScope, type Scope, type ScopePatch, toScope } from './scope.ts'
import { deleteScope, insertScope, listScopes, lockScope, type ScopeColumns, updateScope } from './scope-store.ts'

/** Every change of a permission, with its event. Those of the Management API itself never change. */
export const scopeOperations = ({
  database: { knex },
  mutate,
  indicators,
}: Pick<ManagementDependencies, 'database' | 'mutate' | 'indicators'>) => {
  const requireOwnResource = async (trx: Knex, resourceId: string) => {
    const resource = await findResource(trx, resourceId)
    if (resource === undefined) throw unknownResource(resourceId)
    if (isOfManagement(resource, indicators)) throw problem('resource.cannot_modify_management_api')
  }

  return {
    async list(resourceId: string, search: Search | undefined, page: Page | undefined): Promise<Listed<Scope>> {
      if ((await findResource(knex, resourceId)) === undefined) throw unknownResource(resourceId)
      const { rows, total } = await listScopes(knex, resourceId, search, page)
      return { rows: rows.map(toScope), total }
    },

    async create(context: OperationContext, resourceId: string, input: NewScope): Promise<Scope> {
      refuseWhiteSpace(input.name)
      return mutate(context, async ({ trx, record }) => {
        await requireOwnResource(trx, resourceId)
        const created = toScope(await insertScope(trx, { id: newId(), resource_id: resourceId, ...input }))
        await record({ type: 'Scope.Created', entity: { kind: 'scope', id: created.id }, data: created })
        return created
      })
    },

    async update(context: OperationContext, resourceId: string, scopeId: string, patch: ScopePatch): Promise<Scope> {
      refuseWhiteSpace(patch.name)
      return mutate(context, async ({ trx, record }) => {
        await requireOwnResource(trx, resourceId)
        const row = await lockScope(trx, resourceId, scopeId)
        if (row === undefined) throw problem('entity.not_exists_with_id', { data: { id: scopeId } })
        const changes = changesOf<ScopeColumns>(row, patch as Partial<ScopeColumns>)
        if (changes === undefined) return toScope(row)
        const updated = toScope(await updateScope(trx, scopeId, changes))
        await record({ type: 'Scope.Data.Updated', entity: { kind: 'scope', id: scopeId }, data: updated })
        return updated
      })
    },

    delete: (context: OperationContext, resourceId: string, scopeId: string): Promise<void> =>
      mutate(context, async ({ trx, record }) => {
        await requireOwnResource(trx, resourceId)
        const row = await lockScope(trx, resourceId, scopeId)
        if (row === undefined) throw problem('entity.not_found', { data: { id: scopeId } })
        await deleteScope(trx, scopeId)
        await record({ type: 'Scope.Deleted', entity: { kind: 'scope', id: scopeId }, data: null })
      }),
  }
}

const refuseWhiteSpace = (name: string | undefined) => {
  if (name !== undefined && /\s/.test(name)) throw problem('scope.name_with_space')
}
