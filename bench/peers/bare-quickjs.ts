import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { parentPort, workerData } from 'node:worker_threads'
import imported from '@jitl/quickjs-ng-wasmfile-release-sync'
import { newQuickJSWASMModuleFromVariant, newVariant, type QuickJSSyncVariant } from 'quickjs-emscripten-core'

/**
 * The floor: one thread that does nothing but make an engine with the same limits, run the script in it and throw it
 * away, over and over. No queue, no messages, no checks of the result.
 */
const { script, input, seconds } = workerData as { script: string; input: string; seconds: number }

const path = createRequire(import.meta.url).resolve('@jitl/quickjs-ng-wasmfile-release-sync/wasm')
const wasmModule = await WebAssembly.compile(readFileSync(path))
const variant = imported as unknown as QuickJSSyncVariant
const engine = await newQuickJSWASMModuleFromVariant(newVariant(variant, { wasmModule }))

const call = (): void => {
  // Only so that it is asked: no call of this script comes near.
  const deadline = performance.now() + 1_000
  const runtime = engine.newRuntime({
    memoryLimitBytes: 8 * 1024 * 1024,
    maxStackSizeBytes: 256 * 1024,
    interruptHandler: () => performance.now() > deadline,
  })
  const context = runtime.newContext()
  context.unwrapResult(context.evalCode(script)).dispose()
  context.newString(input).consume((text) => context.setProp(context.global, 'input', text))
  const promise = context.unwrapResult(context.evalCode('getCustomJwtClaims(JSON.parse(input))'))
  context.unwrapResult(runtime.executePendingJobs()).toString()
  const state = context.getPromiseState(promise)
  if (state.type !== 'fulfilled') throw new Error('the script did not return')
  state.value.consume((value) => JSON.stringify(context.dump(value)))
  promise.dispose()
  context.dispose()
  runtime.dispose()
}

const run = (milliseconds: number): number => {
  const end = performance.now() + milliseconds
  let calls = 0
  for (; performance.now() < end; calls++) call()
  return calls
}

run(500)
parentPort!.postMessage('ready')
parentPort!.once('message', () => parentPort!.postMessage(run(seconds * 1_000)))
