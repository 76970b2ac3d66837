import pg from 'pg'
import { withArrayText } from './array-parameter.ts'
import type { Statement } from './database.ts'

/**
 * A named statement on one connection. `client.query` of an object copies it by the descriptors of its properties,
 * which takes a tenth of what a statement does.
 */
export const runStatement = async <Row extends object>(
  client: pg.ClientBase,
  { name, text }: Statement,
  values: readonly unknown[],
): Promise<Row[]> => {
  try {
    const { rows } = await new Promise<pg.QueryResult<Row>>((resolve, reject) => {
      // An argument: V8 takes a function that is written where it is assigned to a property for one that stays, and
      // what those hold on to, here the whole answer, is copied from collection to collection.
      const query = new NamedQuery<Row>(text, withArrayText(values), (error, result) =>
        error ? reject(error) : resolve(result),
      )
      query.name = name
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

interface Field {
  name: string
  dataTypeID: number
  format: 'text' | 'binary'
}

/** What pg's types leave out of it. */
const Result = pg.Result as unknown as new () => {
  rows: unknown[]
  _types: pg.CustomTypesConfig
  _parsers: ((value: string) => unknown)[]
  fields: readonly Field[]
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

const Query = pg.Query as unknown as new <Row extends object>(
  text: string,
  values: unknown[],
  callback: (error: Error | null, result: pg.QueryResult<Row>) => void,
) => pg.Submittable & {
  name: string
  _result: unknown
  _results: unknown
}

class NamedQuery<Row extends object> extends Query<Row> {
  override readonly _result = new NamedResult()
  override readonly _results = this._result
}
