import type { Knex } from 'knex'
import { keywordSearch } from '../../base/lists/keyword.ts'
import { matching, textMatches } from '../../base/lists/matching-store.ts'
import { userSearchText } from '../users/user-store.ts'

interface Searched {
  table: string
  /** What the record is called, and one fact that tells it from its like: SQL. */
  name: string
  detail: string
  /** Columns that are searched, of which a trigram index knows. */
  columns: readonly string[]
  /** Columns of which the whole value is looked up, in any case, by an index. */
  folded?: readonly string[]
}

const searched = {
  user: {
    table: 'users',
    name: 'coalesce(name, username, primary_email, primary_phone)',
    detail: 'coalesce(primary_email, username, primary_phone)',
    columns: [],
    folded: ['username', 'primary_email'],
  },
  application: { table: 'applications', name: 'name', detail: 'type', columns: ['name', 'description', 'id'] },
  role: { table: 'roles', name: 'name', detail: 'description', columns: ['name', 'description', 'id'] },
  resource: { table: 'resources', name: 'name', detail: 'indicator', columns: ['name', 'indicator', 'id'] },
  organization: { table: 'organizations', name: 'name', detail: 'description', columns: ['name', 'description', 'id'] },
  hook: { table: 'hooks', name: 'name', detail: 'url', columns: ['name', 'url', 'id'] },
} as const satisfies Record<string, Searched>

export type SearchedKind = keyof typeof searched

export interface Found {
  kind: SearchedKind
  id: string
  name: string | null
  detail: string | null
  /** By its id, or by the whole of a user name or an address. */
  isExact: boolean
}

/** Without it the indexes of trigrams would have nothing to look for, or too much. */
const indexed = /[\p{L}\p{N}]{3}/u

/** In one statement: of each kind what has this id, then up to `limit` that have the text somewhere. */
export const searchRecords = async (
  knex: Knex,
  kinds: readonly SearchedKind[],
  q: string,
  limit: number,
): Promise<Found[]> => {
  if (kinds.length === 0) return []
  const queries = [
    ...kinds.map((kind) => exact(knex, kind, q).limit(limit)),
    ...(indexed.test(q) ? kinds.map((kind) => containing(knex, kind, q, limit)) : []),
  ]
  const rows: Found[] = await knex.unionAll(queries, true)
  const seen = new Set<string>()
  return rows.filter(({ kind, id }) => {
    const isNew = !seen.has(`${kind} ${id}`)
    seen.add(`${kind} ${id}`)
    return isNew
  })
}

const recordsOf = (knex: Knex, kind: SearchedKind, isExact: boolean): Knex.QueryBuilder => {
  const { table, name, detail } = searched[kind]
  return knex(table).select(
    knex.raw(`'${kind}' AS kind, id, ${name} AS name, ${detail} AS detail, ${isExact} AS "isExact"`),
  )
}

const exact = (knex: Knex, kind: SearchedKind, q: string) => {
  const { folded = [] }: Searched = searched[kind]
  return recordsOf(knex, kind, true).where((group) => {
    group.where({ id: q })
    for (const column of folded) group.orWhereRaw('lower(??) = lower(?)', [column, q])
  })
}

const containing = (knex: Knex, kind: SearchedKind, q: string, limit: number) => {
  const query = recordsOf(knex, kind, false)
  if (kind === 'user') {
    const found = textMatches(
      knex.queryBuilder(),
      keywordSearch(q, Object.keys(userSearchText.columns))!,
      userSearchText,
    )
    return query.whereIn('id', found.limit(limit))
  }
  const { columns } = searched[kind]
  matching(query, keywordSearch(q, columns), Object.fromEntries(columns.map((column) => [column, column])))
  return query.limit(limit)
}
