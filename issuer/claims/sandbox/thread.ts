import { parentPort, workerData } from 'node:worker_threads'
import imported from '@jitl/quickjs-ng-wasmfile-release-sync'
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSSyncVariant,
  type QuickJSWASMModule,
} from 'quickjs-emscripten-core'
import { lowerPriority } from '../../../platform/lower-priority.ts'
import { prepareCall, type SandboxCall } from './call.ts'
import type { CallMessage, FetchedAnswer, FromThread, ThreadStart, ToThread } from './messages.ts'
import type { ScriptFetch } from './script-fetch.ts'

/**
 * The thread side of `sandbox.ts`: one call after another, the next one's engine made as soon as the last one is thrown
 * away.
 */

const { module, limits, nice, callsPerInstance, offersFetch } = workerData as ThreadStart
if (!parentPort) throw new Error('This file is the beginning of a thread.')
const port = parentPort
const say = (message: FromThread): void => port.postMessage(message)

// Its types are those of its CommonJS form.
const variant = imported as unknown as QuickJSSyncVariant

/** 64 kB each: 16 MB to begin with, 64 MB at most, whatever a script makes the engine do. */
const pages = { initial: 256, maximum: 1024 }

const newInstance = (): Promise<QuickJSWASMModule> =>
  newQuickJSWASMModuleFromVariant(
    newVariant(variant, { wasmModule: module, wasmMemory: new WebAssembly.Memory(pages) as never }),
  )

/**
 * Failures after which the instance is replaced: they leave memory behind, or stop the engine at an arbitrary point.
 */
const spoiling = new Set(['cpu', 'memory'])

let engine = await newInstance()
let calls = 0
let next: SandboxCall | undefined

const fetching = new Map<number, (message: Extract<ToThread, { fetched: number }>['answer']) => void>()
let fetches = 0

const askFetch: ScriptFetch = (request) =>
  new Promise<FetchedAnswer>((resolve, reject) => {
    const number = fetches++
    fetching.set(number, (answer) => ('failed' in answer ? reject(new Error(answer.failed)) : resolve(answer)))
    say({ fetch: number, request })
  })

const prepare = () => prepareCall(engine, limits, offersFetch ? askFetch : undefined)

/** Throws away what was used, all of it when it is worn. */
const renew = async (used: SandboxCall, isSpoilt: boolean) => {
  let isWorn = isSpoilt || ++calls >= callsPerInstance
  try {
    // What is thrown away as a whole need not be taken apart.
    if (!isWorn) {
      used.dispose()
      next = prepare()
    }
  } catch {
    isWorn = true
  }
  if (!isWorn) return
  engine = await newInstance()
  calls = 0
  next = prepare()
}

const run = async (message: CallMessage) => {
  const call = next ?? prepare()
  next = undefined
  const done = await call.run(message)
  say({ done })
  fetching.clear()
  await renew(call, 'failed' in done.outcome && spoiling.has(done.outcome.failed))
}

lowerPriority(nice)
next = prepare()
// A call may come while the last one's engine is still being thrown away.
let last: Promise<void> = Promise.resolve()
port.on('message', (message: ToThread) => {
  if ('call' in message) last = last.then(() => run(message.call))
  else {
    fetching.get(message.fetched)?.(message.answer)
    fetching.delete(message.fetched)
  }
})
say({ ready: true })
