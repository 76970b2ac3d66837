import { z } from 'zod'
import type { Query } from '../../platform/database/database.ts'
import { booleanText } from '../base/lists/search.ts'
import { findNames } from './names-store.ts'

export const names = z
  .record(z.string(), z.string())
  .describe('What people and applications that occur are called, by id.')

/** Of a list: whether its rows have `names`. */
export const includeNames = booleanText.describe('Adds to each row what people and applications in it are called.')

/** Rows of a list with the names of those whose ids stand in them: one question for all. */
export const withNames = async <Row extends object>(
  query: Query,
  rows: readonly Row[],
  idsOf: (row: Row) => readonly (string | null)[],
): Promise<(Row & { names: Record<string, string> })[]> => {
  const known = (row: Row) => idsOf(row).filter((id) => id !== null)
  const found = await findNames(query, [...new Set(rows.flatMap(known))])
  return rows.map((row) => {
    const own = known(row).flatMap((id) => (Object.hasOwn(found, id) ? [[id, found[id]!] as const] : []))
    return { ...row, names: Object.fromEntries(own) }
  })
}
