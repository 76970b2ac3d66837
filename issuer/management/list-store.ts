import type { Knex } from 'knex'
import type { Page } from './route.ts'
import type { Search, SearchCondition } from './search.ts'

/** Adds the conditions of a search; `columns` says where each field of the record stands. All can use the trigram indexes. */
export const matching = (
  query: Knex.QueryBuilder,
  search: Search | undefined,
  columns: Record<string, string>,
): void => {
  if (search === undefined) return
  query.where((group) => {
    for (const condition of search.conditions) {
      const add = (one: Knex.QueryBuilder) => addCondition(one, condition, search.isCaseSensitive, columns)
      if (search.joint === 'and') group.andWhere(add)
      else group.orWhere(add)
    }
  })
}

const addCondition = (
  query: Knex.QueryBuilder,
  { fields, mode, values }: SearchCondition,
  isCaseSensitive: boolean,
  columns: Record<string, string>,
) => {
  for (const field of fields) {
    const column = columns[field]!
    for (const value of values) {
      if (mode === 'exact' && isCaseSensitive) query.orWhere(column, value)
      else {
        const pattern = mode === 'exact' ? literalPattern(value) : value
        if (isCaseSensitive) query.orWhereLike(column, pattern)
        else query.orWhereILike(column, pattern)
      }
    }
  }
}

/** A pattern that matches this text alone: `%`, `_` and `\` mean themselves. */
export const literalPattern = (text: string): string => text.replace(/[\\%_]/g, '\\$&')

export interface Listed<Row> {
  rows: Row[]
  total: number
}

/** What is known of a list besides its query. */
export interface ListFacts {
  /** The number of all rows, where it can be had for less than counting them. */
  total?: (() => Promise<number>) | undefined
  /** The column of the ids. With it a page far from the start reads the rows before it from the index of the order only. */
  key?: string
}

/** Fewer rows than this are skipped in the table itself. */
const deepOffset = 1_000

/** One page of `query` in its own order with the number of all its rows; without `page` all of them. */
export const listed = async <Row>(
  query: Knex.QueryBuilder,
  page: Page | undefined,
  { total: totalOf, key }: ListFacts = {},
): Promise<Listed<Row>> => {
  if (page === undefined) {
    const rows: Row[] = await query
    return { rows, total: rows.length }
  }
  const counted = async () => {
    const row = await query.clone().clearSelect().clearOrder().count({ total: '*' }).first()
    return Number(row.total)
  }
  const [rows, total] = await Promise.all([pageOf<Row>(query, page, key), (totalOf ?? counted)()])
  return { rows, total }
}

const pageOf = <Row>(query: Knex.QueryBuilder, { limit, offset }: Page, key: string | undefined): Promise<Row[]> => {
  const isDeep = key !== undefined && offset >= deepOffset
  if (!isDeep) return query.clone().limit(limit).offset(offset)
  const ids = query.clone().clearSelect().select(key).limit(limit).offset(offset)
  return query.clone().clearWhere().whereIn(key, ids)
}

/** The number of all rows of a table that `row_counts` is kept for (migration 0013). Exact, as of this moment. */
export const keptCount = async (knex: Knex, relation: 'users'): Promise<number> => {
  const row = await knex('row_counts').where({ relation }).sum({ total: 'count' }).first()
  return Number(row?.['total'] ?? 0)
}
