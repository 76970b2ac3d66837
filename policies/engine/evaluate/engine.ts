import { loadBuiltins } from '../builtins/index.ts'
import type { WasmInstance } from '../instance/instance.ts'
import {
  createRunner,
  type EngineSource,
  type PreparedEngine,
  prepareEngine,
  type Run,
  type RunnerOptions,
} from '../instance/runner.ts'
import { parseValue } from '../values/text.ts'
import type { RegoObject, RegoSet, Value } from '../values/value.ts'
import { type EntrypointOptions, entrypointTable, inputText, resultOf } from './entrypoints.ts'

/** A compiled policy on this thread. */
export interface WasmEngine {
  readonly entrypoints: readonly string[]
  /**
   * The value of the entrypoint, `undefined` when no rule gives one. Throws `PolicyError`; the next call has a fresh
   * instance.
   */
  evaluate(entrypoint: string, input: unknown): unknown
  /** The same as an exact Rego value; the input is the text of one. For tools: several times slower. */
  evaluateExactly(entrypoint: string, input: string | undefined): Value | undefined
  /** What the last evaluation took of its units, also when it threw; 0 when the answer was known. */
  unitsTaken(): number
}

export type EngineOptions = EntrypointOptions & Omit<RunnerOptions, 'builtins'>

/**
 * Rejects with `PolicyError` when the module is not an OPA policy or needs a built-in function that we do not supply.
 */
export const createWasmEngine = async (options: EngineSource & EngineOptions): Promise<WasmEngine> =>
  loadWasmEngine(prepareEngine(options, options), options)

/** From what was prepared here or in another thread. */
export const loadWasmEngine = async (prepared: PreparedEngine, options: EngineOptions = {}): Promise<WasmEngine> => {
  const builtins = await loadBuiltins(prepared.image.builtins)
  return engineOf(prepared, createRunner(prepared, { ...options, builtins }), options)
}

const engineOf = ({ image }: PreparedEngine, run: Run, options: EntrypointOptions): WasmEngine => {
  const named = entrypointTable(image.entrypoints, options)
  let taken = 0
  const ask = <Result>(use: (instance: WasmInstance) => Result): Result =>
    run((instance) => {
      try {
        return use(instance)
      } finally {
        taken = instance.unitsTaken()
      }
    })
  return {
    entrypoints: Object.keys(image.entrypoints),
    evaluate(entrypoint, input) {
      taken = 0
      const found = named(entrypoint)
      const text = inputText(input, found)
      const known = text === undefined ? undefined : found.known?.get(text)
      if (known !== undefined) return resultOf(known)
      return ask((instance) => {
        const answer = instance.evaluate(found.id, text)
        const result = resultOf(answer)
        if (text !== undefined && instance.repeatable()) found.known?.set(text, answer)
        return result
      })
    },
    evaluateExactly(entrypoint, input) {
      const { id } = named(entrypoint)
      return ask((instance) => {
        // A set of at most one object, unlike the JSON of it.
        const [answer] = parseValue(instance.evaluate(id, input, { form: 'value' })) as RegoSet
        return (answer as RegoObject | undefined)?.get('result')
      })
    },
    unitsTaken: () => taken,
  }
}
