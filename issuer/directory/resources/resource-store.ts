import type { Knex } from 'knex'
import type { Page } from '../../base/lists/list-store.ts'
import { type Listed, listed } from '../../base/lists/list-store.ts'
import type { ResourceRow } from './resource.ts'

export type ResourceColumns = Pick<ResourceRow, 'name' | 'indicator' | 'access_token_ttl'>

export const insertResource = async (trx: Knex, resource: ResourceColumns & { id: string }): Promise<ResourceRow> => {
  const [row] = await trx<ResourceRow>('resources').insert(resource).returning('*')
  return row as ResourceRow
}

export const findResource = (knex: Knex, id: string): Promise<ResourceRow | undefined> =>
  knex<ResourceRow>('resources').where({ id }).first()

/** The resource, which stays as it is until the transaction ends. */
export const lockResource = (trx: Knex, id: string): Promise<ResourceRow | undefined> =>
  trx<ResourceRow>('resources').where({ id }).forNoKeyUpdate().first()

export const updateResource = async (
  trx: Knex,
  id: string,
  columns: Partial<ResourceColumns>,
): Promise<ResourceRow> => {
  const [row] = await trx<ResourceRow>('resources').where({ id }).update(columns).returning('*')
  return row as ResourceRow
}

export const deleteResource = (trx: Knex, id: string): Promise<number> =>
  trx<ResourceRow>('resources').where({ id }).delete()

/** Newest first. */
export const listResources = (knex: Knex, page: Page | undefined): Promise<Listed<ResourceRow>> =>
  listed(
    knex<ResourceRow>('resources')
      .select('resources.*')
      .orderBy([{ column: 'created_at', order: 'desc' }, 'id']),
    page,
  )

/**
 * Makes this resource the default one, or no longer. There is one at most: whoever sets it waits here, because taking
 * it from the resource that has it and giving it to another are two statements, between which somebody else could give
 * it away too.
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
