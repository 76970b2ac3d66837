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
      const query = new NamedQuery<Row>(text, withArrayText(values))
      query.name = name
      query.callback = (error, result) => (error ? reject(error) : resolve(result))
      client.query(query)
    })
    return rows
  } catch (error) {
    // Whose statement it was, rather than what read the answer.
    if (error instanceof Error) Error.captureStackTrace(error)
    throw error
  }
}

/** What pg's types leave out of it. */
const NamedQuery = pg.Query as unknown as new <Row extends object>(
  text: string,
  values: unknown[],
) => pg.Submittable & {
  name: string
  callback: (error: Error | null, result: pg.QueryResult<Row>) => void
}
