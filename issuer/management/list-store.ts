import type { Knex } from 'knex'
import type { Page } from './route.ts'
import type { Search, SearchCondition } from './search.ts'

/** Adds the conditions of a search; `columns` says where each field of the record stands. */
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
      if (mode === 'like') {
        if (isCaseSensitive) query.orWhereLike(column, value)
        else query.orWhereILike(column, value)
      } else if (isCaseSensitive) query.orWhere(column, value)
      else query.orWhereRaw('lower(??) = lower(?)', [column, value])
    }
  }
}

export interface Listed<Row> {
  rows: Row[]
  total: number
}

/** One page of `query` in its own order with the number of all its rows; without `page` all of them. */
export const listed = async <Row>(query: Knex.QueryBuilder, page: Page | undefined): Promise<Listed<Row>> => {
  if (page === undefined) {
    const rows: Row[] = await query
    return { rows, total: rows.length }
  }
  const counting = query.clone().clearSelect().clearOrder().count({ total: '*' }).first()
  const [rows, counted] = await Promise.all([query.clone().limit(page.limit).offset(page.offset), counting])
  return { rows, total: Number(counted.total) }
}
