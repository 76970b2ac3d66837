import type { Knex } from 'knex'
import { type Listed, listed, type Page } from '../../base/lists/list-store.ts'
import { rowsOf } from '../../base/rows-store.ts'
import type { ResourceRow } from './resource.ts'

export type ResourceColumns = Pick<ResourceRow, 'name' | 'indicator' | 'access_token_ttl'>

export const {
  insert: insertResource,
  find: findResource,
  lock: lockResource,
  update: updateResource,
  delete: deleteResource,
} = rowsOf<ResourceRow, ResourceColumns>('resources')

/** Newest first. */
export const listResources = (knex: Knex, page: Page | undefined): Promise<Listed<ResourceRow>> =>
  listed(
    knex<ResourceRow>('resources')
      .select('resources.*')
      .orderBy([{ column: 'created_at', order: 'desc' }, 'id']),
    page,
  )

/**
 * Makes this resource the default, or not. There is at most one. Callers wait for each other here, because taking it
 * from one resource and giving it to another are two statements.
 */
export const setDefaultResource = async (
  trx: Knex,
  id: string,
  isDefault: boolean,
): Promise<ResourceRow | undefined> => {
  await trx.raw('SELECT pg_advisory_xact_lock(7305176)')
  if (isDefault) {
    await trx<ResourceRow>('resources').where({ is_default: true }).whereNot({ id }).update({ is_default: false })
  }
  const [row] = await trx<ResourceRow>('resources').where({ id }).update({ is_default: isDefault }).returning('*')
  return row as ResourceRow | undefined
}
