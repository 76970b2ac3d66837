// Chooses the test files of the second pass, on another PostgreSQL: those that together send every statement of the
// product that the first pass sent, the cheapest for each statement first. Prints their paths, one a line.
//
//   node .ci/files-that-send.cjs <statements> <report>
//
// `statements` was written by test/setup/sent-statements.ts, `report` by vitest's reporter `json`.
const { readFileSync } = require('node:fs')
const { relative } = require('node:path')

const [statementsFile, reportFile] = process.argv.slice(2)

/** They are about what the database keeps; others meet it on their way, and take long. */
const isCandidate = (file) => /^test\/(events|issuer|platform|relay)\//.test(file)

/** The product's statements have a name, or knex makes them, in small letters; tests write theirs in capitals. */
const isOfProduct = (statement) => /^[a-z]/.test(statement) && !statement.startsWith('test-')

/** How many columns knex writes, and how long a list is that it looks in, makes no other statement. */
const normalized = (statement) =>
  statement
    .replace(/^(update "\w+") .*$/s, '$1')
    .replace(/^(insert into "\w+") .*?(?=on conflict|$)/s, '$1 ')
    .replace(/\$\d+(, \$\d+)*/g, '$$')

const seconds = new Map(
  JSON.parse(readFileSync(reportFile, 'utf8')).testResults.map(({ name, startTime, endTime }) => [
    relative(process.cwd(), name),
    (endTime - startTime) / 1000,
  ]),
)
const statementsOf = new Map()
for (const line of readFileSync(statementsFile, 'utf8').trim().split('\n')) {
  const [file, statement] = JSON.parse(line)
  if (!isCandidate(file) || !isOfProduct(statement)) continue
  if (!statementsOf.has(file)) statementsOf.set(file, new Set())
  statementsOf.get(file).add(normalized(statement))
}
// Starting with a file takes a moment whatever it does.
let files = [...statementsOf].map(([file, unsent]) => ({ file, unsent, cost: 1 + (seconds.get(file) ?? 0) }))
for (;;) {
  files = files.filter(({ unsent }) => unsent.size > 0)
  if (files.length === 0) break
  const best = files.reduce((one, other) => (other.unsent.size * one.cost > one.unsent.size * other.cost ? other : one))
  console.log(best.file)
  const sent = [...best.unsent]
  for (const { unsent } of files) for (const statement of sent) unsent.delete(statement)
}
