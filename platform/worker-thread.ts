import { setFlagsFromString } from 'node:v8'
import { Worker, type WorkerOptions } from 'node:worker_threads'

/** A thread for a module of ours, given by `moduleUrl`. How this process was started is none of its business. */
export const startWorkerThread = (module: URL, options: WorkerOptions): Worker => {
  // V8 compiles a wrapper for a JavaScript function once WebAssembly has called it a thousand times, and shares it
  // between threads. A thread that asks for one whose last user is just gone gets what is being freed, and the process
  // dies (decision 0034): threads have none.
  setFlagsFromString('--wasm-wrapper-tiering-budget=2147483647')
  return new Worker(module, { execArgv: [], ...options })
}
