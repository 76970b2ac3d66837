import type { Knex } from 'knex'

/** The part of a list that a caller asked for. */
export interface Page {
  page: number
  pageSize: number
  limit: number
  offset: number
}

/** Where a page of a long list begins, instead of counting all rows before it: next to a row that the caller has. */
export interface Beside {
  id: string
  side: 'after' | 'before'
}

export interface Total {
  total: number
  /** There are more: they were counted no further. */
  isCapped?: boolean
}

export interface Listed<Row> extends Total {
  rows: Row[]
}

/** How far a list is counted for callers who can do without an exact number (`enableCap`). */
export const countCap = 10_000

/** What makes far pages of a long list cheap. */
export interface ListFacts {
  /**
   * The columns of the order and the last of them, which is the id. With it a page finds its ids first, and reads and
   * makes up no rows but its own. Without it the query has its own order.
   */
  order?: Order
  /**
   * The number of all rows, where it can be had for less than counting them. A page nearer to the end is then looked
   * for from there.
   */
  total?: (() => Promise<Total>) | undefined
  /** Rows are counted no further than this, unless `total` says their number. */
  cap?: number | undefined
  /** Where the page begins, whatever its number. Needs `order`, of two columns. */
  beside?: Beside | undefined
  /** A narrow table that has the ids of the same rows in the same order. A page finds them there. */
  ids?: Ids | undefined
}

interface Ids {
  query: Knex.QueryBuilder
  order: Order
}

export type Order = readonly { column: string; order: 'asc' | 'desc' }[]

/** Nearer to the start than this the end is not looked at. */
const deepOffset = 1_000

/** One page of `query` in its order with the number of all its rows; without `page` all of them. */
export const listed = async <Row>(
  query: Knex.QueryBuilder,
  page: Page | undefined,
  { order, total: known, cap, beside, ids = order && { query, order } }: ListFacts = {},
): Promise<Listed<Row>> => {
  if (page === undefined) {
    const rows: Row[] = await ordered(query.clone(), order)
    return { rows, total: rows.length }
  }
  const { limit, offset } = page
  const totalOf = known ?? (() => countOf(query, cap))
  const place = order && ids && { order, ids }
  if (place && beside) return { rows: await rowsBeside<Row>(query, place, beside, limit), ...(await totalOf()) }
  const early = known && offset >= deepOffset ? await known() : undefined
  if (place && early && !early.isCapped) {
    const before = early.total - offset - limit
    if (offset > before) {
      const rows = await rowsAt<Row>(query, backwards(place), limit + Math.min(before, 0), Math.max(before, 0))
      return { rows: rows.reverse(), ...early }
    }
  }
  const rows = await rowsAt<Row>(query, place, limit, offset)
  // A page that has room left ends the list: what few rows match is not looked for again to be counted.
  const isLast = rows.length < limit && (rows.length > 0 || offset === 0)
  return { rows, ...(isLast ? { total: offset + rows.length } : (early ?? (await totalOf()))) }
}

/** The number of rows of a query, counted no further than `cap`. */
export const countOf = async (query: Knex.QueryBuilder, cap?: number): Promise<Total> => {
  const rows = query.clone().clearSelect().clearOrder()
  if (cap === undefined) return { total: Number((await rows.count({ total: '*' }).first()).total) }
  const { client } = query
  const first = rows.select(client.raw('1')).limit(cap + 1)
  const { total } = await client.queryBuilder().from(first.as('counted')).count({ total: '*' }).first()
  return Number(total) > cap ? { total: cap, isCapped: true } : { total: Number(total) }
}

/** In which order rows are answered, and where the ids of a page of them are found. */
interface Place {
  order: Order
  ids: Ids
}

const rowsAt = async <Row>(
  query: Knex.QueryBuilder,
  place: Place | undefined,
  limit: number,
  offset: number,
): Promise<Row[]> => {
  if (limit <= 0) return []
  if (place === undefined) return query.clone().limit(limit).offset(offset)
  const { order, ids } = place
  const found = ordered(ids.query.clone().clearSelect().select(keyOf(ids.order)), ids.order)
  return ordered(query.clone().clearWhere().whereIn(keyOf(order), found.limit(limit).offset(offset)), order)
}

/**
 * The rows next to one, found by its place in the index of the order. The first condition is the one that an index is
 * entered by; alone, the second one would be looked at for every row before.
 */
const rowsBeside = async <Row>(
  query: Knex.QueryBuilder,
  place: Place,
  { id, side }: Beside,
  limit: number,
): Promise<Row[]> => {
  const { order, ids } = side === 'after' ? place : backwards(place)
  const [by, key] = ids.order as [Order[number], Order[number]]
  const [table = ''] = key.column.split('.')
  const there = query.client.queryBuilder().from(table).where(key.column, id).select(by.column)
  const beyond = ({ order }: Order[number]) => (order === 'asc' ? '>' : '<')
  const rest = ids.query
    .clone()
    .where(by.column, `${beyond(by)}=`, there)
    .where((group: Knex.QueryBuilder) => group.where(by.column, beyond(by), there).orWhere(key.column, beyond(key), id))
  const rows = await rowsAt<Row>(query, { order, ids: { query: rest, order: ids.order } }, limit, 0)
  return side === 'after' ? rows : rows.reverse()
}

const keyOf = (order: Order): string => order.at(-1)!.column

const ordered = (query: Knex.QueryBuilder, order: Order = []): Knex.QueryBuilder =>
  order.length === 0 ? query : query.orderBy([...order])

const backwards = ({ order, ids }: Place): Place => ({
  order: order.map(reversed),
  ids: { query: ids.query, order: ids.order.map(reversed) },
})

const reversed = ({ column, order }: Order[number]) => ({
  column,
  order: order === 'asc' ? ('desc' as const) : ('asc' as const),
})

/** The number of all rows of a table that `row_counts` is kept for (migration 0013). Exact, as of this moment. */
export const keptCount = async (knex: Knex, relation: 'users'): Promise<number> => {
  const row = await knex('row_counts').where({ relation }).sum({ total: 'count' }).first()
  return Number(row?.['total'] ?? 0)
}
