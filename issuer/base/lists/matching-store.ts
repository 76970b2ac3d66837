import type { Knex } from 'knex'
import type { Order } from './list-store.ts'
import type { Search, SearchCondition } from './search.ts'

/** Adds the conditions of a search; `columns` says where each field of the record stands. */
export const matching = (
  query: Knex.QueryBuilder,
  search: Search | undefined,
  columns: Record<string, string>,
  folded: readonly string[] = [],
): void => {
  if (search === undefined) return
  query.where((group) =>
    addConditions(group, search, (one, condition) =>
      addCondition(one, condition, search.isCaseSensitive, columns, folded),
    ),
  )
}

const addConditions = (
  group: Knex.QueryBuilder,
  { joint, conditions }: Search,
  add: (query: Knex.QueryBuilder, condition: SearchCondition) => void,
) => {
  for (const condition of conditions) {
    if (joint === 'and') group.andWhere((one) => add(one, condition))
    else group.orWhere((one) => add(one, condition))
  }
}

/**
 * A table that holds all searched fields of a record as one text in lower case, a line each, so that one index serves
 * every search.
 */
export interface SearchText {
  table: string
  /** The id of the record. */
  key: string
  body: string
  /** The searched fields, with the column of the record where each stands. */
  columns: Record<string, string>
  /** Those whose whole value is found by an index of its own, in lower case. */
  folded: readonly string[]
  /** That of the list, as the text keeps it. */
  order: Order
}

/**
 * `matching` for a record `id` that has a search text: found by the text first, then by the fields, where the text does
 * not say it all.
 */
export const matchingText = (query: Knex.QueryBuilder, search: Search, id: string, text: SearchText): void => {
  const { columns, folded } = text
  const isIndexed = ({ mode, fields }: SearchCondition) =>
    mode === 'exact' && !search.isCaseSensitive && fields.every((field) => folded.includes(field))
  if (!search.conditions.every(isIndexed)) query.whereIn(id, textMatches(query.client.queryBuilder(), search, text))
  if (!isAnsweredByText(search, text)) matching(query, search, columns, folded)
}

/** The keys of the records whose text may match; `query` is a new one. */
export const textMatches = (query: Knex.QueryBuilder, search: Search, { table, key, body }: SearchText) =>
  query
    .from(table)
    .select(key)
    .where((group: Knex.QueryBuilder) =>
      addConditions(group, search, (one, { mode, values }) => {
        for (const value of values) {
          const text = mode === 'exact' ? literalPattern(value) : value
          const pattern = `%${text}%`.replace(/^%+/, '%').replace(/(?<!\\)%+$/, '%')
          const local = localPart.exec(pattern)?.[0]
          if (local === undefined) one.orWhereRaw('?? LIKE lower(?)', [body, pattern])
          // The index does not know the second expression.
          else one.orWhereRaw(`(?? LIKE lower(?) AND ?? || '' LIKE lower(?))`, [body, `${local}%`, body, pattern])
        }
      }),
    )

/**
 * Of an address only what stands before the domain is looked for in the index of trigrams: those of a domain are in so
 * many rows that going through them takes five times as long.
 */
const localPart = /^[^@]*[\p{L}\p{N}]{3}[^@]*@(?=.*[\p{L}\p{N}])/u

/** Whether a record matches exactly when its text does: a plain text is looked for, anywhere in any field. */
export const isAnsweredByText = ({ isCaseSensitive, conditions }: Search, { columns }: SearchText): boolean =>
  !isCaseSensitive &&
  conditions.every(
    ({ fields, mode, values }) =>
      mode === 'like' &&
      fields.length === Object.keys(columns).length &&
      values.every((value) => /^%[^%_\\\n]+%$/.test(value)),
  )

const addCondition = (
  query: Knex.QueryBuilder,
  { fields, mode, values }: SearchCondition,
  isCaseSensitive: boolean,
  columns: Record<string, string>,
  folded: readonly string[],
) => {
  for (const field of fields) {
    const column = columns[field]!
    for (const value of values) {
      if (mode === 'exact' && isCaseSensitive) query.orWhere(column, value)
      else if (mode === 'exact' && folded.includes(field)) query.orWhereRaw('lower(??) = lower(?)', [column, value])
      else {
        const pattern = mode === 'exact' ? literalPattern(value) : value
        if (isCaseSensitive) query.orWhereLike(column, pattern)
        else query.orWhereILike(column, pattern)
      }
    }
  }
}

/** A pattern that matches this text alone: `%`, `_` and `\` mean themselves. */
const literalPattern = (text: string): string => text.replace(/[\\%_]/g, '\\$&')
