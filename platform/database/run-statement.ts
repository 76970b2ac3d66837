import type { Writable } from 'node:stream'
import pg from 'pg'
// @ts-expect-error @types/pg leaves it out.
import { prepareValue } from 'pg/lib/utils'
import { withArrayText } from './array-parameter.ts'
import type { Statement } from './database.ts'

/**
 * A named statement on one connection. `client.query` of an object copies it by the descriptors of its properties,
 * which takes a tenth of what a statement does. With `begins` a transaction begins with it: `canBegin` says whether the
 * connection is ready for that.
 */
export const runStatement = async <Row extends object>(
  client: pg.ClientBase,
  { name, text }: Statement,
  values: readonly unknown[],
  { begins = false } = {},
): Promise<Row[]> => {
  try {
    const { rows } = await new Promise<pg.QueryResult<Row>>((resolve, reject) => {
      // An argument: V8 takes a function that is written where it is assigned to a property for one that stays, and
      // what those hold on to, here the whole answer, is copied from collection to collection.
      const query = new NamedQuery<Row>(text, withArrayText(values), (error, result) =>
        error ? reject(error) : resolve(result),
      )
      query.name = name
      query.begins = begins
      client.query(query)
    })
    return rows
  } catch (error) {
    // Whose statement it was, rather than what read the answer.
    if (error instanceof Error) Error.captureStackTrace(error)
    throw error
  }
}

/** A statement without values and rows, such as those around a transaction. With a callback for the same reason. */
export const runCommand = (client: pg.ClientBase, text: string): Promise<void> =>
  new Promise((resolve, reject) => {
    void client.query(text, (error) => (error ? reject(error) : resolve()))
  })

export const begin: Statement = { name: 'begin', text: 'BEGIN' }

/** Whether BEGIN was answered on this connection before, so that it has not to be parsed. */
export const canBegin = (client: pg.ClientBase): boolean =>
  describedOf((client as unknown as { connection: Connection }).connection).has(begin.name)

interface Field {
  name: string
  dataTypeID: number
  format: 'text' | 'binary'
}

/** What PostgreSQL says of the rows of a statement, and how their values are read. */
interface Columns {
  text: string
  fields: readonly Field[]
  _parsers: readonly ((value: string) => unknown)[]
}

/** What pg's types leave out of it. */
const Result = pg.Result as unknown as new () => Omit<Columns, 'text'> & {
  rows: unknown[]
  _types: pg.CustomTypesConfig
}

/**
 * pg copies rows from an empty one that it makes anew for each answer, in a way that V8 is slow at: reading an answer
 * takes half as long without. Members are in the order of the columns.
 */
class NamedResult extends Result {
  addFields(fields: readonly Field[]) {
    this.fields = fields
    this._parsers = fields.map(({ dataTypeID, format }) => this._types.getTypeParser(dataTypeID, format))
  }

  parseRow(values: readonly (string | null)[]) {
    const row: Record<string, unknown> = {}
    for (let index = 0; index < values.length; index++) {
      const value = values[index]!
      row[this.fields[index]!.name] = value === null ? null : this._parsers[index]!(value)
    }
    return row
  }
}

interface Connection {
  stream: Writable
  /** Texts by name. */
  parsedStatements: Record<string, string>
  submittedNamedStatements: Record<string, string>
  parse(message: { name: string; text: string }): void
  bind(message: { portal: string; statement: string; values: unknown[]; valueMapper(value: unknown): unknown }): void
  describe(message: { type: 'P'; name: string }): void
  execute(message: { portal: string }): void
  sync(): void
}

const Query = pg.Query as unknown as new <Row extends object>(
  text: string,
  values: unknown[],
  callback: (error: Error | null, result: pg.QueryResult<Row>) => void,
) => {
  name: string
  text: string
  values: unknown[]
  _result: unknown
  _results: unknown
  _accumulateRows: boolean
  submit(connection: Connection): Error | null
  handleCommandComplete(message: { text: string }, connection: Connection): void
  handleError(error: Error, connection: Connection): void
}

/** By connection and name of a statement that has been answered there. */
const described = new WeakMap<Connection, Map<string, Columns>>()

const describedOf = (connection: Connection): Map<string, Columns> => {
  let statements = described.get(connection)
  if (!statements) {
    statements = new Map()
    described.set(connection, statements)
  }
  return statements
}

/**
 * The columns of a statement are asked for once for each connection: PostgreSQL refuses to execute one whose columns
 * have changed since it was parsed (`cached plan must not change result type`). pg asks each time, and reading that
 * takes longer than reading a row. What is sent to a connection within a turn of the event loop is written at once.
 */
class NamedQuery<Row extends object> extends Query<Row> {
  override readonly _result = new NamedResult()
  override readonly _results = this._result
  begins = false

  override submit(connection: Connection) {
    const { name, text } = this
    const columns = describedOf(connection).get(name)
    const parsed = columns?.text ?? textOf(connection, name)
    if (parsed !== undefined && parsed !== text) return new Error(`Two statements have the name ${name}.`)
    const { stream } = connection
    if (stream.writableCorked === 0) {
      stream.cork()
      process.nextTick(uncork, stream)
    }
    // Nothing ends the group between them, so a BEGIN that is refused takes the statement with it.
    if (this.begins) {
      bind(connection, begin.name, [])
      connection.execute({ portal: '' })
    }
    if (parsed === undefined) {
      connection.parse({ name, text })
      if (name) connection.submittedNamedStatements[name] = text
    }
    try {
      bind(connection, name, this.values)
      if (columns) {
        this._result.fields = columns.fields
        this._result._parsers = columns._parsers
        this._accumulateRows = true
      } else connection.describe({ type: 'P', name: '' })
      connection.execute({ portal: '' })
    } catch (error) {
      // A value that cannot be written.
      this.handleError(error as Error, connection)
    }
    connection.sync()
    return null
  }

  override handleCommandComplete(message: { text: string }, connection: Connection) {
    if (this.begins && message.text === begin.text) return
    const statements = describedOf(connection)
    if (!this.name || statements.has(this.name)) return
    const { fields, _parsers } = this._result
    statements.set(this.name, { text: this.text, fields, _parsers })
  }
}

/** Of a statement that is prepared or on its way. Without a name, each is another one. */
const textOf = ({ parsedStatements, submittedNamedStatements }: Connection, name: string): string | undefined =>
  name ? (parsedStatements[name] ?? submittedNamedStatements[name]) : undefined

const bind = (connection: Connection, statement: string, values: unknown[]) =>
  connection.bind({ portal: '', statement, values, valueMapper: prepareValue })

const uncork = (stream: Writable) => stream.uncork()
