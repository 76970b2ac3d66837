import type pg from 'pg'
import type { Query, Statement } from './database.ts'
import { begin, canBegin, runCommand, runStatement } from './run-statement.ts'
import { parametersOf } from './shared-statement.ts'

/**
 * A transaction on a connection of its own, which goes back to the pool: it begins with the first statement, and what
 * asks nothing is none. Statements that do not wait for each other are sent together once the first is answered; where
 * that fails, so do they. When it is over, `query` rejects: what `work` does not wait for may not be done.
 */
export const runTransaction = async <Result>(
  client: pg.PoolClient,
  work: (query: Query) => Promise<Result>,
): Promise<Result> => {
  let first: Promise<object[]> | undefined
  let isOver = false
  let broken: Error | undefined

  const refuseWhenOver = () => {
    if (isOver) throw new Error('The transaction is over.')
  }
  const send = async <Row extends object>(statement: Statement, values: readonly unknown[], options = {}) => {
    refuseWhenOver()
    return runStatement<Row>(client, statement, parametersOf(statement, values), options)
  }
  const sendFirst = async <Row extends object>(statement: Statement, values: readonly unknown[]) => {
    if (canBegin(client)) return send<Row>(statement, values, { begins: true })
    await send(begin, [])
    return send<Row>(statement, values)
  }
  const query: Query = async <Row extends object>(statement: Statement, values: readonly unknown[]) => {
    refuseWhenOver()
    if (first === undefined) {
      const rows = sendFirst<Row>(statement, values)
      first = rows
      return rows
    }
    // Waited for: a statement that is behind a BEGIN that is refused would stand alone.
    await first
    return send<Row>(statement, values)
  }

  try {
    const result = await work(query)
    isOver = true
    if (first) await runCommand(client, 'COMMIT')
    return result
  } catch (error) {
    isOver = true
    if (first)
      await runCommand(client, 'ROLLBACK').catch((failure: Error) => {
        broken = failure
      })
    throw error
  } finally {
    client.release(broken)
  }
}
