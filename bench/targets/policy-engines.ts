import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { loadPolicy as loadPeer } from '@open-policy-agent/opa-wasm'
import { builtinNames } from '../../policies/engine/builtins/index.ts'
import { createWasmEngine, readBundle } from '../../policies/engine/index.ts'
import { loadPolicy } from '../../policies/policy-engine.ts'
import { answerCalls, ownCpuMicros } from '../harness/calls.ts'

/** One engine in a process of its own, with one bundle. */
export type EngineName = keyof typeof engines

/** What it does with a question. */
export type Ended = { ms: number; outcome: 'answered' | 'ended'; answer?: unknown; error?: string }

type Evaluate = (entrypoint: string, input: unknown) => unknown

const engines = {
  surrogate: async (bundle: Uint8Array): Promise<Evaluate> => (await loadPolicy(bundle)).evaluate,
  'without memory of answers': async (bundle: Uint8Array): Promise<Evaluate> => {
    const { wasm, data } = readBundle(bundle)
    return (await createWasmEngine({ wasm, data, remember: false })).evaluate
  },
  'opa-wasm': async (bundle: Uint8Array): Promise<Evaluate> => {
    const { wasm, data } = readBundle(bundle)
    const policy = await loadPeer(wasm)
    policy.setData(data as object)
    return (entrypoint, input) => policy.evaluate(input, entrypoint)[0]?.result
  },
} as const

let evaluate: Evaluate

type Question = { entrypoint: string; input: unknown }

answerCalls({
  start: () => {},
  load: async ({ engine, bundle }: { engine: EngineName; bundle: string }): Promise<void> => {
    evaluate = await engines[engine](Buffer.from(bundle, 'base64'))
  },
  /** µs of processor time for one decision. */
  decide: ({ entrypoint, input, ms }: Question & { ms: number }): number => {
    const until = performance.now() + ms
    const before = ownCpuMicros()
    let count = 0
    for (; performance.now() < until; count++) evaluate(entrypoint, input)
    return (ownCpuMicros() - before) / count
  },
  ask: ({ entrypoint, input }: Question): Ended => {
    const start = performance.now()
    try {
      const answer = evaluate(entrypoint, input)
      return { ms: performance.now() - start, outcome: 'answered', answer }
    } catch (error) {
      return { ms: performance.now() - start, outcome: 'ended', error: messageOf(error) }
    }
  },
  /** How often rules may throw until the next decision fails, too; undefined when it does not up to `most`. */
  throwsUntilBroken: ({ throwing, next, most }: { throwing: Question; next: Question; most: number }) => {
    const wanted = JSON.stringify(evaluate(next.entrypoint, next.input))
    for (let count = 1; count <= most; count++) {
      try {
        evaluate(throwing.entrypoint, throwing.input)
        return { count, error: 'it did not throw' }
      } catch {}
      try {
        if (JSON.stringify(evaluate(next.entrypoint, next.input)) !== wanted) return { count, error: 'another answer' }
      } catch (error) {
        return { count, error: messageOf(error) }
      }
    }
    return undefined
  },
  functions: (engine: EngineName): number => (engine === 'opa-wasm' ? peerFunctions() : builtinNames.size),
})

/** It throws texts, too. */
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const peerFunctions = (): number => {
  const require = createRequire(import.meta.url)
  const folder = dirname(require.resolve('@open-policy-agent/opa-wasm'))
  return Object.keys(require(join(folder, 'builtins', 'index.js'))).length
}
