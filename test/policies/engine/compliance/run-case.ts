import { createHash, randomUUID } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { PolicyError } from '../../../../policies/engine/base/policy-error.ts'
import { loadBuiltins } from '../../../../policies/engine/builtins/index.ts'
import { readBundle } from '../../../../policies/engine/bundle/bundle.ts'
import { capabilitiesFile, compilePolicies } from '../../../../policies/engine/compile/compile.ts'
import { createWasmEngine } from '../../../../policies/engine/evaluate/engine.ts'
import { goJson } from '../../../../policies/engine/go/json.ts'
import { loadImage } from '../../../../policies/engine/instance/image.ts'
import { compileModule } from '../../../../policies/engine/instance/module.ts'
import { createRunner } from '../../../../policies/engine/instance/runner.ts'
import { parseValue } from '../../../../policies/engine/values/text.ts'
import type { Value } from '../../../../policies/engine/values/value.ts'
import { unmetered } from '../unmetered.ts'
import type { Bindings, ComplianceCase } from './cases.ts'
import { lenientAnswer } from './lenient-answer.ts'
import { peerAnswer } from './peer-answer.ts'

/**
 * `refused`: OPA compiles it to WebAssembly, and our compiler does not take it: it uses a function that is not
 * supplied. `beyond`: OPA itself does not compile it.
 */
export type Outcome = { kind: 'passed' } | { kind: 'failed' | 'refused' | 'beyond'; why: string }

const entrypoint = 'surrogate_compliance/answers'

/** @param options.peer evaluates with OPA's own package for JavaScript instead, and refuses no function at once. */
export const createCaseRunner = ({ opa, cache, peer = false }: { opa: string; cache: string; peer?: boolean }) => {
  /** The bytes that were made of the same things before. Compiling is nearly all of the time. */
  const cached = async (key: readonly unknown[], make: () => Promise<Uint8Array>): Promise<Uint8Array> => {
    const file = join(
      cache,
      createHash('sha256')
        .update(JSON.stringify([opa, ...key]))
        .digest('hex'),
    )
    const known = await readFile(file).catch(() => undefined)
    if (known) return known
    const made = await make()
    await mkdir(cache, { recursive: true })
    // Two cases may have the same rules, and be compiled at the same time.
    const draft = `${file}.${randomUUID()}`
    await writeFile(draft, made)
    await rename(draft, file)
    return made
  }

  /** With the functions of production, unless told otherwise. */
  const compiled = async (modules: readonly string[], capabilities: string | null = capabilitiesFile) => {
    const functions = capabilities === null ? null : await readFile(capabilities, 'utf8')
    const encode = (text: string) => new TextEncoder().encode(text)
    const sources = new Map(modules.map((text, index) => [`module${index}.rego`, encode(text)]))
    return cached([modules, functions], () => compilePolicies({ sources, opa, capabilities }))
  }

  const whyNotCompiled = async (modules: readonly string[], error: PolicyError): Promise<Outcome> => {
    const why = error.issues[0]?.message ?? error.message
    const ofOpa = await compiled(modules, null).catch((reason: unknown) => reason)
    return { kind: ofOpa instanceof PolicyError ? 'beyond' : 'refused', why }
  }

  /** What the case wants, or where it wants an error that only strict evaluations have, what OPA answers without it. */
  const wantedOf = async (one: ComplianceCase): Promise<Wanted> => {
    if (!one.strict_error || one.want_result) return { result: one.want_result ?? [], error: one.want_error_code }
    const { modules, query, data, input, input_term } = one
    const answer = await cached(['lenient', modules, query, data, input, input_term], async () =>
      new TextEncoder().encode(JSON.stringify(await lenientAnswer(one, opa))),
    )
    return { result: JSON.parse(new TextDecoder().decode(answer)) as Bindings[] }
  }

  return async (one: ComplianceCase): Promise<Outcome> => {
    const wanted = await wantedOf(one)
    const modules = [...one.modules, queryModule(one, Object.keys(wanted.result[0] ?? {}))]
    const bundle = await compiled(modules).catch(async (error: unknown) => {
      if (!(error instanceof PolicyError)) throw error
      const why = await whyNotCompiled(modules, error)
      return peer && why.kind === 'refused' ? compiled(modules, null) : why
    })
    if ('kind' in bundle) return bundle
    return peer ? evaluatedByPeer(one, wanted, bundle) : evaluated(one, wanted, bundle)
  }
}

interface Wanted {
  result: Bindings[]
  error?: string | undefined
}

const evaluated = async (one: ComplianceCase, wanted: Wanted, bundle: Uint8Array): Promise<Outcome> => {
  try {
    const { wasm } = readBundle(bundle)
    const [metered, plain] = [await textOf(one, compileModule(wasm)), await textOf(one, unmetered(wasm))]
    if (metered !== plain) return { kind: 'failed', why: `metered, ${metered}; and without, ${plain}` }
    const engine = await createWasmEngine({ wasm, data: one.data ?? {} })
    const answer = engine.evaluateExactly(entrypoint, inputOf(one))
    if (wanted.error) return { kind: 'failed', why: `no ${wanted.error}, but ${describe(answer)}` }
    return compare(one, wanted.result, answer === undefined ? [] : (JSON.parse(goJson(answer)) as Bindings[]))
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    if (wanted.error === 'eval_conflict_error' && /\bconflict$/.test(error.message)) return { kind: 'passed' }
    const cause = error.cause instanceof Error ? `: ${error.cause.message}` : ''
    return { kind: 'failed', why: `${error.message}${cause}` }
  }
}

/** What the module itself answers, or why not: the same, byte for byte, with and without the meter. */
const textOf = async (one: ComplianceCase, module: WebAssembly.Module): Promise<string> => {
  const documents = new TextEncoder().encode(JSON.stringify(one.data ?? {}))
  try {
    const image = loadImage(module, documents, { room: 33_554_432, memory: 268_435_456 })
    const builtins = await loadBuiltins(image.builtins)
    const run = createRunner({ module, image }, { builtins, now: () => 1_700_000_000_000 })
    return run(({ evaluate }) => evaluate(image.entrypoints[entrypoint]!, inputOf(one), { form: 'value' }))
  } catch (error) {
    return (error as Error).message
  }
}

const evaluatedByPeer = async (one: ComplianceCase, wanted: Wanted, bundle: Uint8Array): Promise<Outcome> => {
  try {
    const answer = await peerAnswer({
      wasm: readBundle(bundle).wasm,
      data: one.data ?? {},
      input: inputOf(one),
      entrypoint,
    })
    if (wanted.error) return { kind: 'failed', why: `no ${wanted.error}, but ${JSON.stringify(answer)}` }
    return compare(one, withoutOrder(wanted.result), withoutOrder((answer ?? []) as Bindings[]))
  } catch (error) {
    const message = messageOf(error)
    if (wanted.error === 'eval_conflict_error' && /\bconflict$/.test(message)) return { kind: 'passed' }
    return { kind: 'failed', why: message }
  }
}

/** Its answers are JSON, in which sets are lists in an order of their own: no list has to have the right one. */
const withoutOrder = <Json>(value: Json): Json =>
  JSON.parse(JSON.stringify(value), (_name, item: unknown) =>
    Array.isArray(item) ? item.sort((a, b) => (canonical(a) < canonical(b) ? -1 : 1)) : item,
  ) as Json

/** It throws texts and plain objects, too. */
const messageOf = (error: unknown): string =>
  typeof error === 'string' ? error : String((error as { message?: unknown } | undefined)?.message)

/** The query as a rule that gives all bindings of its variables. */
const queryModule = ({ query, input_term: term, modules }: ComplianceCase, variables: readonly string[]): string => {
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

/** The order of bindings says nothing; where `sorted` says so, neither does that of a bound list. */
const inOrder = (list: Bindings[], sorted = false): string[] =>
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
const compare = ({ sort_bindings: sorted }: ComplianceCase, wanted: Bindings[], found: Bindings[]): Outcome => {
  if (isDeepStrictEqual(inOrder(found, sorted), inOrder(wanted, sorted))) return { kind: 'passed' }
  return {
    kind: 'failed',
    why: `wanted ${JSON.stringify(wanted).slice(0, 400)}, got ${JSON.stringify(found).slice(0, 400)}`,
  }
}
