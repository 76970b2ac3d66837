import { readFile, stat } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { z } from 'zod'
import { findOpa } from '../../../policies/engine/opa-binary.ts'
import { programArguments } from '../../support/program-arguments.ts'
import { type ComplianceCase, readCases } from './cases.ts'
import { createCaseRunner, type Outcome } from './run-case.ts'

/**
 * `npm run compliance -- --cases <folder>` (or SURROGATE_COMPLIANCE_CASES): runs OPA's compliance cases through our engine, with `--only`
 * those of one group or name. Known failures stand in `failures.yaml` with their reason; exit 1 when another case fails or a listed one
 * passes, 2 without cases.
 */
const failuresFile = fileURLToPath(new URL('./failures.yaml', import.meta.url))
const cache = fileURLToPath(new URL('../../../node_modules/.cache/surrogate-compliance', import.meta.url))

const { values, misuse } = programArguments('npm run compliance -- --cases <folder> [--only <group or case>]', {
  cases: { type: 'string' },
  only: { type: 'string' },
})
const wanted = values.cases ?? process.env['SURROGATE_COMPLIANCE_CASES'] ?? ''
const folder = (await stat(wanted).catch(() => undefined))?.isDirectory()
  ? wanted
  : misuse('Say where the cases are: --cases <folder>, or SURROGATE_COMPLIANCE_CASES')

const known = z.record(z.string(), z.string()).parse(parse(await readFile(failuresFile, 'utf8')) ?? {})
const all = await readCases(folder)
const cases = all.filter(({ group, name }) => !values.only || group === values.only || name === values.only)
const runCase = createCaseRunner({ opa: await findOpa(), cache })

const outcomes = new Map<ComplianceCase, Outcome>()
const waiting = [...cases]
const work = async (): Promise<void> => {
  for (let one = waiting.shift(); one; one = waiting.shift()) outcomes.set(one, await runCase(one))
}
await Promise.all(Array.from({ length: availableParallelism() }, work))

const inKind = (kind: Outcome['kind'], list = cases) => list.filter((one) => outcomes.get(one)!.kind === kind)
for (const group of new Set(cases.map((one) => one.group))) {
  const members = cases.filter((one) => one.group === group)
  const [passed, failed, aside] = (['passed', 'failed', 'aside'] as const).map((kind) => inKind(kind, members).length)
  console.log(
    `${group.padEnd(40)} ${passed} passed${failed ? `, ${failed} failed` : ''}${aside ? `, ${aside} aside` : ''}`,
  )
}

const problems: string[] = []
for (const one of inKind('failed')) {
  const { why } = outcomes.get(one) as { why: string }
  if (Object.hasOwn(known, one.name)) console.log(`known: ${one.name}: ${known[one.name]}`)
  else problems.push(`${one.name}\n      ${why}`)
}
for (const one of inKind('passed')) {
  if (Object.hasOwn(known, one.name)) problems.push(`${one.name}\n      passes, but is listed in failures.yaml`)
}
for (const name of Object.keys(known)) {
  if (!all.some((one) => one.name === name))
    problems.push(`${name}\n      is listed in failures.yaml, but there is no such case`)
}
for (const problem of problems) console.log(`NEW: ${problem}`)

const [passed, failed, aside] = [inKind('passed').length, inKind('failed').length, inKind('aside').length]
const share = ((100 * passed) / (passed + failed)).toFixed(2)
console.log(
  `${passed} passed, ${failed} failed (${share} %), ${aside} aside (strict errors, graphql), ${problems.length} unexpected`,
)
process.exitCode = problems.length > 0 ? 1 : 0
