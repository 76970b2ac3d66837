import { parentPort, workerData } from 'node:worker_threads'
import { lowerPriority } from '../../platform/lower-priority.ts'
import { strictIssues, testRules } from '../../policies/authoring/check.ts'
import { explain } from '../../policies/authoring/explain.ts'
import {
  type Bundle,
  type CompileIssue,
  compilePolicies,
  createWasmEngine,
  isTest,
  loadWasmEngine,
  type Opa,
  PolicyError,
  readBundle,
  readSources,
  type Sources,
  type WasmEngine,
} from '../../policies/engine/index.ts'
import { createMasks } from '../logs/mask.ts'
import { compareDecisions } from './comparison.ts'
import type { TryAnswer } from './policy-answers.ts'
import { toldRules } from './told-rules.ts'
import type { TrialTask } from './trial.ts'

/** The thread side of `trial.ts`: one set of candidates, from its files to what it would change. */

/** What of OPA runs at a time: twice, for the module and what it reads. Bytes, ms. */
const bounds = { bytes: 1_073_741_824, milliseconds: 15_000 }
/** For what was recorded, with a body perhaps. Bytes. */
const largestInput = 1_048_576
/** Of the comparisons, in ms: each is bounded by its units besides. */
const comparingMs = 20_000
/** In characters, and in tests. */
const longestReport = 32_768
const mostTests = 1_000
const longestRules = 524_288

lowerPriority(19)
const stop = new AbortController()
parentPort!.once('message', () => stop.abort())

const task = workerData as TrialTask
const opa: Opa = { program: task.opa, bounds: { ...bounds, signal: stop.signal } }
const masks = createMasks(task.masks)

const candidatesOf = async (): Promise<Sources> => {
  const sources = new Map(await readSources(task.folder, { tests: true }))
  for (const [path, text] of Object.entries(task.files)) {
    if (text === null) sources.delete(path)
    else sources.set(path, Buffer.from(text))
  }
  for (const path of Object.keys(task.files)) {
    const folders = path.split('/').slice(0, -1)
    const taken = folders.map((_, index) => folders.slice(0, index + 1).join('/')).find((one) => sources.has(one))
    if (taken !== undefined) throw new PolicyError(`${taken} is a file, and ${path} needs a folder of this name`)
  }
  return sources
}

/** The test report and other prose of OPA; it may quote rules at length. */
const shortened = (text: string): string => (text.length > longestReport ? `${text.slice(0, longestReport)}…` : text)

const toldIssues = (issues: readonly CompileIssue[]): CompileIssue[] =>
  issues.slice(0, 100).map(({ message, file, ...place }) => ({
    ...(file !== undefined && { file: file.replace(/^\.\//, '') }),
    ...place,
    message: shortened(message),
  }))

const testsOf = async (sources: Sources): Promise<NonNullable<TryAnswer['tests']>> => {
  try {
    const { passed, report, tests } = await testRules({ sources, opa })
    return { passed, report: shortened(report), tests: tests.slice(0, mostTests) }
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    return { passed: false, report: shortened(error.message), tests: [] }
  }
}

const rulesOf = async (rules: Sources, question: { entrypoint: string; input: unknown }) => {
  try {
    const told = toldRules((await explain({ sources: rules, opa, ...question })).rules, question.input)
    return JSON.stringify(told).length > longestRules ? undefined : told
  } catch (error) {
    if (error instanceof PolicyError) return undefined
    throw error
  }
}

const evaluationOf = async (engine: WasmEngine, rules: Sources): Promise<TryAnswer['evaluation']> => {
  const { question, mostExplained } = task
  if (!question) return undefined
  const answer = evaluate(engine, question)
  const told = answer.units <= mostExplained ? await rulesOf(rules, question) : undefined
  return { ...answer, ...masks(answer), ...(told && { rules: told }) } as TryAnswer['evaluation']
}

const evaluate = (engine: WasmEngine, question: { entrypoint: string; input: unknown }) => {
  try {
    const result = engine.evaluate(question.entrypoint, question.input)
    return { result, units: engine.unitsTaken() }
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    const cause = error.cause instanceof Error ? `: ${error.cause.message}` : ''
    return { error: `${error.message}${cause}`, units: engine.unitsTaken() }
  }
}

const decisionsOf = async (engine: WasmEngine, paths: PathsOf): Promise<TryAnswer['decisions']> => {
  if (!task.recorded) return undefined
  const { records, inForce } = task.recorded
  const options = { remember: false, limits: { units: task.units, input: largestInput }, reads: inForce.reads }
  const before = await loadWasmEngine(inForce.prepared, options)
  const end = performance.now() + comparingMs
  return compareDecisions({
    records,
    masks,
    before: { set: before, paths: inForce.paths },
    after: { set: engine, paths },
    mayGoOn: () => performance.now() < end,
  })
}

type PathsOf = NonNullable<Bundle['built']>['paths']

const nothing = { issues: [], warnings: [], missing: [] }

const run = async (): Promise<TryAnswer> => {
  const sources = await candidatesOf()
  const rules = new Map([...sources].filter(([name]) => !isTest(name)))
  const { wasm, data, built } = readBundle(await compilePolicies({ sources: rules, opa }))
  const options = { remember: false, limits: { units: task.units, input: largestInput }, reads: built?.reads }
  const engine = await createWasmEngine({ wasm, data, ...options })
  const missing = task.needed.filter((entrypoint) => !engine.entrypoints.includes(entrypoint))
  const warnings = toldIssues(await strictIssues({ sources, opa }))
  const tests = await testsOf(sources)
  const evaluation = await evaluationOf(engine, rules)
  const decisions = await decisionsOf(engine, built?.paths)
  return { issues: [], warnings, missing, tests, ...(evaluation && { evaluation }), ...(decisions && { decisions }) }
}

const answer = await run().catch((error: unknown): TryAnswer => {
  if (!(error instanceof PolicyError)) throw error
  const issues = error.issues.length > 0 ? error.issues : [{ message: error.message }]
  return { ...nothing, issues: toldIssues(issues) }
})
parentPort!.postMessage(Buffer.from(JSON.stringify(answer)))
parentPort!.close()
