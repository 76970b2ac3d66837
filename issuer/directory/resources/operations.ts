import { newId } from '../../../platform/ids.ts'
import { changesOf } from '../../base/change.ts'
import type { ManagementDependencies } from '../../base/dependencies.ts'
import { problem } from '../../base/errors/problems.ts'
import type { Listed, Page } from '../../base/lists/list-store.ts'
import type { OperationContext } from '../../base/route.ts'
import {
  type NewResource,
  type Resource,
  type ResourcePatch,
  type ResourceRow,
  type ResourceWithScopes,
  toResource,
} from './resource.ts'
import {
  deleteResource,
  findResource,
  insertResource,
  listResources,
  lockResource,
  type ResourceColumns,
  setDefaultResource,
  updateResource,
} from './resource-store.ts'
import { toScope } from './scope.ts'
import { scopesOfResources } from './scope-store.ts'

/** Every change of an API resource. They emit no events; its permissions do (`scope-operations.ts`). */
export const resourceOperations = ({
  database: { knex },
  mutate,
  indicators,
}: Pick<ManagementDependencies, 'database' | 'mutate' | 'indicators'>) => {
  const refuseManagement = (row: ResourceRow) => {
    if (isOfManagement(row, indicators)) throw problem('resource.cannot_modify_management_api')
  }

  const withScopes = async (rows: ResourceRow[]): Promise<ResourceWithScopes[]> => {
    const scopes = Map.groupBy(
      await scopesOfResources(
        knex,
        rows.map(({ id }) => id),
      ),
      (scope) => scope.resource_id,
    )
    return rows.map((row) => ({ ...toResource(row), scopes: (scopes.get(row.id) ?? []).map(toScope) }))
  }

  return {
    async list(page: Page | undefined, includeScopes: boolean): Promise<Listed<Resource | ResourceWithScopes>> {
      const { rows, total } = await listResources(knex, page)
      return { rows: includeScopes ? await withScopes(rows) : rows.map(toResource), total }
    },

    async get(id: string): Promise<Resource> {
      const row = await findResource(knex, id)
      if (row === undefined) throw unknownResource(id)
      return toResource(row)
    },

    create: (context: OperationContext, input: NewResource): Promise<ResourceWithScopes> =>
      mutate(context, async ({ trx }) => {
        // An alias of the Management API is taken even while no row has it.
        if (indicators.includes(input.indicator)) throw problem('resource.resource_identifier_in_use')
        const row = await insertResource(trx, {
          id: newId(),
          name: input.name,
          indicator: input.indicator,
          access_token_ttl: input.accessTokenTtl,
        })
        return { ...toResource(row), scopes: [] }
      }),

    update: (context: OperationContext, id: string, { name, accessTokenTtl }: ResourcePatch): Promise<Resource> =>
      mutate(context, async ({ trx }) => {
        const row = await lockResource(trx, id)
        if (row === undefined) throw unknownResource(id)
        refuseManagement(row)
        const patch = { name, access_token_ttl: accessTokenTtl } as Partial<ResourceColumns>
        const changes = changesOf<ResourceColumns>(row, patch)
        return toResource(changes ? await updateResource(trx, id, changes) : row)
      }),

    setDefault: (context: OperationContext, id: string, isDefault: boolean): Promise<Resource> =>
      mutate(context, async ({ trx }) => {
        const row = await setDefaultResource(trx, id, isDefault)
        if (row === undefined) throw unknownResource(id)
        refuseManagement(row)
        return toResource(row)
      }),

    delete: (context: OperationContext, id: string): Promise<void> =>
      mutate(context, async ({ trx }) => {
        const row = await lockResource(trx, id)
        if (row === undefined) throw problem('entity.not_found', { data: { id } })
        if (indicators.includes(row.indicator)) throw problem('resource.cannot_delete_management_api')
        await deleteResource(trx, id)
      }),
  }
}

/** It is the Management API, or was under an earlier configuration: what it defines may count again. */
export const isOfManagement = (row: ResourceRow, indicators: readonly string[]): boolean =>
  row.is_management || indicators.includes(row.indicator)

export const unknownResource = (id: string) => problem('entity.not_exists_with_id', { data: { id } })
