import { readFile } from 'node:fs/promises'
import { createHistogram } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { silentLogger } from '../../platform/logger.ts'
import { defaultEntrypoint, loadPolicies, PolicyError, type PolicySet } from '../../policies/decide.ts'
import { casesOf, questionOfCase, resolverOf } from './cases.ts'
import { type Invocation, number } from './invocation.ts'

/**
 * `surrogate policy bench`: how long a decision takes, with and without the memory of answers, and whether memory
 * grows.
 */
export const benchPolicies = async (invocation: Invocation): Promise<number> => {
  const { path, values, say } = invocation
  const decisions = number(values, 'decisions') ?? 200_000
  const question = await questionOf(invocation)
  const entrypoint = values['entrypoint'] ?? question.entrypoint ?? defaultEntrypoint
  say(`${entrypoint}, ${question.what}, ${decisions} decisions each`)
  for (const remember of [false, true]) {
    const set = await loadPolicies({ path, logger: silentLogger, opaBin: process.env['OPA_BIN'], remember })
    say(
      `${remember ? 'answered from memory' : 'evaluated           '}  ${measure(set, entrypoint, question.input, decisions)}`,
    )
  }
  return 0
}

const questionOf = async (invocation: Invocation): Promise<{ input: unknown; entrypoint?: string; what: string }> => {
  const [file] = invocation.positionals
  if (file !== undefined) {
    const text = await readFile(file, 'utf8').catch((cause: unknown) => {
      throw new PolicyError(`${file} cannot be read`, { cause })
    })
    return { input: JSON.parse(text), what: `the input in ${file}` }
  }
  const name = invocation.values['case'] ?? (await firstCase(invocation))
  return { ...(await questionOfCase(invocation, name)), what: `the case "${name}"` }
}

const firstCase = async (invocation: Invocation): Promise<string> => {
  const [cases, resolve] = await Promise.all([casesOf(invocation), resolverOf(invocation)])
  const found = cases?.find((testCase) => 'input' in resolve(testCase))
  if (!found) throw new PolicyError('there is no case to measure: name a file with an input, or a folder with --cases')
  return found.name
}

/** The first decisions are not counted: the engine has yet to be compiled to fast code. */
const warmUp = 5_000

const measure = (set: PolicySet, entrypoint: string, input: unknown, decisions: number): string => {
  for (let round = 0; round < warmUp; round++) set.evaluate(entrypoint, input)
  const histogram = createHistogram()
  const before = memory()
  for (let round = 0; round < decisions; round++) {
    const start = process.hrtime.bigint()
    set.evaluate(entrypoint, input)
    histogram.record(process.hrtime.bigint() - start)
  }
  const after = memory()
  const microseconds = (percentile: number) => `${(histogram.percentile(percentile) / 1000).toFixed(1)} µs`
  const growth = (after - before) / 1_048_576
  return `p50 ${microseconds(50)}  p99 ${microseconds(99)}  p99.9 ${microseconds(99.9)}  memory ${growth < 0 ? '' : '+'}${growth.toFixed(1)} MB  ${set.unitsTaken?.()} units`
}

/** What is still used after a full collection, and what WebAssembly holds. Bytes. */
const memory = (): number => {
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

const collectGarbage = (): void => {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
}
