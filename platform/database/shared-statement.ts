import type { Statement } from './database.ts'

/**
 * One SQL statement for many requests at once. It has a single parameter, the JSON of all of them, and reads it as the
 * relation `asked`: a row for each request, with its number `n` and `columns`. Each row of its result tells by `n`
 * whose it is. Run with `query` like any other, with one value: an object with those of the columns, where `bytea()`
 * makes bytes. `pipelined-query.ts` puts requests together.
 */
export interface SharedStatement extends Statement {
  isShared: true
}

export const isShared = (statement: Statement): statement is SharedStatement => 'isShared' in statement

/** `columns`: SQL types by name, unquoted. `text` gets the SQL of `asked` for its FROM clause. */
export const sharedStatement = (
  name: string,
  columns: Readonly<Record<string, string>>,
  text: (asked: string) => string,
): SharedStatement => {
  const definitions = Object.entries(columns).map(([column, type]) => `${column} ${type}`)
  return {
    name,
    isShared: true,
    text: text(`json_to_recordset($1::json) AS asked (n integer, ${definitions.join(', ')})`),
  }
}

/**
 * A query written for one request, whose values it reads as `asked.<column>`, for many. OFFSET 0 keeps the planner from
 * joining across requests: each is looked up as if it were alone.
 */
export const lookUp = (name: string, columns: Readonly<Record<string, string>>, text: string): SharedStatement =>
  sharedStatement(
    name,
    columns,
    (asked) => `SELECT asked.n, found.* FROM ${asked}, LATERAL (${text} OFFSET 0) AS found`,
  )

/** A value of type `bytea`, for a request. */
export const bytea = (bytes: Buffer): string => `\\x${bytes.toString('hex')}`

/**
 * The parameter: each request is an object with the values of `columns` by name, as JSON that PostgreSQL's input
 * function of the type reads.
 */
export const sharedParameter = (requests: readonly (readonly unknown[])[]): string =>
  JSON.stringify(requests.map(([row], n) => ({ n, ...(row as object) })))

/** What a statement is sent with outside a batch. */
export const parametersOf = (statement: Statement, values: readonly unknown[]): readonly unknown[] =>
  isShared(statement) ? [sharedParameter([values])] : values
