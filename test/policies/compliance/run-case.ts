import { createHash, randomUUID } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { goJson } from '../../../policies/engine/builtins/encoding.ts'
import { readBundle } from '../../../policies/engine/bundle.ts'
import { compilePolicies } from '../../../policies/engine/compile.ts'
import { PolicyError } from '../../../policies/engine/policy-error.ts'
import { parseValue, type Value } from '../../../policies/engine/values.ts'
import { createWasmEngine } from '../../../policies/engine/wasm-engine.ts'
import type { ComplianceCase } from './cases.ts'

/** `aside`: WASM cannot express it, so that it counts neither way. */
export type Outcome = { kind: 'passed' } | { kind: 'failed'; why: string } | { kind: 'aside'; why: string }

const entrypoint = 'surrogate_compliance/answers'

export const createCaseRunner = ({ opa, cache }: { opa: string; cache: string }) => {
  /** Compiling is nearly all of the time. */
  const compiled = async (modules: readonly string[]): Promise<Uint8Array> => {
    const file = join(
      cache,
      `${createHash('sha256')
        .update(JSON.stringify([opa, modules]))
        .digest('hex')}.tar.gz`,
    )
    const known = await readFile(file).catch(() => undefined)
    if (known) return known
    const encode = (text: string) => new TextEncoder().encode(text)
    const sources = new Map(modules.map((text, index) => [`module${index}.rego`, encode(text)]))
    const bundle = await compilePolicies({ sources, opa, capabilities: null })
    await mkdir(cache, { recursive: true })
    // Two cases may have the same rules, and be compiled at the same time.
    const draft = `${file}.${randomUUID()}`
    await writeFile(draft, bundle)
    await rename(draft, file)
    return bundle
  }

  return async (one: ComplianceCase): Promise<Outcome> => {
    if (one.group === 'graphql') return { kind: 'aside', why: 'graphql is not supplied' }
    if (one.strict_error && !one.want_result) return { kind: 'aside', why: 'WASM has no strict errors' }
    try {
      const { wasm } = readBundle(await compiled([...one.modules, queryModule(one)]))
      const engine = createWasmEngine({ wasm, data: one.data ?? {} })
      const answer = engine.evaluateExactly(entrypoint, inputOf(one))
      if (one.want_error_code) return { kind: 'failed', why: `no ${one.want_error_code}, but ${describe(answer)}` }
      return compare(one, answer)
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error
      const cause = error.cause instanceof Error ? `: ${error.cause.message}` : ''
      if (one.want_error_code === 'eval_conflict_error' && !error.message.includes('compile')) return { kind: 'passed' }
      return { kind: 'failed', why: `${error.message}${cause}` }
    }
  }
}

/** The query as a rule that gives all bindings of its variables. */
const queryModule = ({ query, want_result: wanted, input_term: term, modules }: ComplianceCase): string => {
  const variables = Object.keys(wanted?.[0] ?? {})
  const bindings = `{${variables.map((name) => `${JSON.stringify(name)}: ${name}`).join(', ')}}`
  const input = term !== undefined && !isJson(term) ? ` with input as ${term}` : ''
  return `package surrogate_compliance\n\n# METADATA\n# entrypoint: true\nanswers := [${bindings} | ${query === 'data = x' ? wholeData(modules) : query}${input}]\n`
}

/** A rule that asks for all of `data` would ask for itself. */
const wholeData = (modules: readonly string[]): string => {
  const roots = modules.map((module) => /^package (\w+)/m.exec(module)![1])
  return `x = {${roots.map((root) => `"${root}": data.${root}`).join(', ')}}`
}

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const inputOf = ({ input, input_term: term }: ComplianceCase): string | undefined =>
  term !== undefined && isJson(term) ? term : input === undefined ? undefined : JSON.stringify(input)

const describe = (value: Value | undefined): string => (value === undefined ? 'undefined' : goJson(value)).slice(0, 400)

type Bindings = Record<string, unknown>[]

/** The order of bindings says nothing; where `sorted` says so, neither does that of a bound list. */
const inOrder = (list: Bindings, sorted = false): string[] =>
  list
    .map((bindings) =>
      Object.entries(bindings).map(([name, value]) => [
        name,
        sorted && Array.isArray(value) ? value.map((item) => canonical(item)).sort() : canonical(value),
      ]),
    )
    .map((bindings) => JSON.stringify(bindings.sort()))
    .sort()

const canonical = (json: unknown): string => goJson(parseValue(JSON.stringify(json)))

/** Sets are compared as sorted lists, which is how the suite writes them. */
const compare = (
  { want_result: wanted, sort_bindings: sorted }: ComplianceCase,
  answer: Value | undefined,
): Outcome => {
  const found = answer === undefined ? [] : (JSON.parse(goJson(answer)) as Bindings)
  if (isDeepStrictEqual(inOrder(found, sorted), inOrder(wanted ?? [], sorted))) return { kind: 'passed' }
  return { kind: 'failed', why: `wanted ${JSON.stringify(wanted).slice(0, 400)}, got ${describe(answer)}` }
}
