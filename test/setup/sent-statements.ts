import { appendFileSync } from 'node:fs'
import { relative } from 'node:path'
import pg from 'pg'
import { expect } from 'vitest'

/**
 * Run before each test file where `SENT_STATEMENTS` names a file: what a test file sends to PostgreSQL is kept there, a
 * line of JSON (`[file, statement]`) for each statement that it has not sent before, by its name or else by its text.
 * What other processes send is not. `.ci/files-that-send.cjs` reads it.
 */

interface Recorder {
  file: string
  sent: Set<string>
}

const key = Symbol.for('surrogate.sent-statements')
/** A worker runs this for each of its test files, and all of them have one pg. */
const worker = globalThis as { [key]?: Recorder }

const record = (to: string): Recorder => {
  const recorder: Recorder = { file: '', sent: new Set() }
  const prototype = pg.Client.prototype as { query(...query: unknown[]): unknown }
  const { query } = prototype
  prototype.query = function (this: pg.Client, ...parts: unknown[]) {
    const [sending] = parts
    const { name, text } = typeof sending === 'string' ? { text: sending } : (sending as pg.QueryConfig)
    const statement = name ?? text
    if (!recorder.sent.has(statement)) {
      recorder.sent.add(statement)
      appendFileSync(to, `${JSON.stringify([recorder.file, statement])}\n`)
    }
    return query.apply(this, parts)
  }
  return recorder
}

worker[key] ??= record(process.env['SENT_STATEMENTS']!)
worker[key].file = relative(process.cwd(), expect.getState().testPath ?? '')
worker[key].sent.clear()
