import { type Query, queryOf, statement, type Transaction } from '../../../platform/database/database.ts'
import type { VersionedEntity } from './entities.ts'

const find = statement('version-find', `SELECT version FROM entity_versions WHERE kind = $1 AND id = $2`)

/** 0 where nothing was recorded yet. */
export const findVersion = async (query: Query, { kind, id }: VersionedEntity): Promise<number> =>
  (await query<{ version: number }>(find, [kind, id]))[0]?.version ?? 0

// The row too where there is none yet, so that the first of two changes is waited for.
const lock = statement(
  'version-lock',
  `INSERT INTO entity_versions AS known (kind, id, version) VALUES ($1, $2, 0)
   ON CONFLICT (kind, id) DO UPDATE SET version = known.version RETURNING version`,
)

/**
 * The version, which stays until the transaction ends; undefined when there is no such entity. The entity is locked
 * before its version, as every change of it does.
 */
export const lockVersion = async (
  transaction: Transaction,
  { kind, id, tables, key, isAlwaysThere }: VersionedEntity,
): Promise<number | undefined> => {
  const query = queryOf(transaction)
  let isThere = isAlwaysThere
  for (const table of tables) {
    const row = statement(`version-lock-${table}`, `SELECT FROM ${table} WHERE ${key} = $1 FOR NO KEY UPDATE`)
    isThere = (await query(row, [id])).length > 0 || isThere
  }
  if (!isThere) return undefined
  const [locked] = await query<{ version: number }>(lock, [kind, id])
  return locked!.version
}
