import { readFile, stat } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { z } from 'zod'
import { findOpa } from '../../../../policies/engine/compile/opa.ts'
import { programArguments } from '../../../support/program-arguments.ts'
import { readCases } from './cases.ts'
import { type Judged, judge } from './judge.ts'
import { createCaseRunner } from './run-case.ts'

/**
 * `npm run compliance -- --cases <folder>` (or SURROGATE_COMPLIANCE_CASES): runs OPA's compliance cases through our
 * engine, compiled with the functions of production; `--only` those of one group or name. Exit 1 when fewer than the
 * bar pass, when a case does not that is not in `failures.yaml`, or when one that is there does; 2 without cases. With
 * `--peer` through `@open-policy-agent/opa-wasm` instead, for comparison: nothing is judged.
 */
const failuresFile = fileURLToPath(new URL('./failures.yaml', import.meta.url))
const cache = fileURLToPath(new URL('../../../../node_modules/.cache/surrogate-compliance', import.meta.url))

const { values, misuse } = programArguments(
  'npm run compliance -- --cases <folder> [--only <group or case>] [--peer]',
  {
    cases: { type: 'string' },
    only: { type: 'string' },
    peer: { type: 'boolean', default: false },
  },
)
const wanted = values.cases ?? process.env['SURROGATE_COMPLIANCE_CASES'] ?? ''
const folder = (await stat(wanted).catch(() => undefined))?.isDirectory()
  ? wanted
  : misuse('Say where the cases are: --cases <folder>, or SURROGATE_COMPLIANCE_CASES')

const known = z.record(z.string(), z.string()).parse(parse(await readFile(failuresFile, 'utf8')) ?? {})
const cases = (await readCases(folder)).filter(
  ({ group, name }) => !values.only || group === values.only || name === values.only,
)
if (cases.length === 0) misuse(`${folder} holds no such cases`)
const runCase = createCaseRunner({ opa: await findOpa(), cache, peer: values.peer })

const results: Judged[] = []
const waiting = cases.map((one, index) => ({ one, index }))
const work = async (): Promise<void> => {
  for (let next = waiting.shift(); next; next = waiting.shift()) {
    results[next.index] = { one: next.one, outcome: await runCase(next.one) }
  }
}
await Promise.all(Array.from({ length: availableParallelism() }, work))

const { table, problems } = judge(results, values.peer ? {} : known, { whole: values.only === undefined })
for (const line of table) console.log(line)
for (const problem of problems) console.log(`${values.peer ? 'not passed' : 'NEW'}: ${problem}`)
process.exitCode = problems.length > 0 && !values.peer ? 1 : 0
