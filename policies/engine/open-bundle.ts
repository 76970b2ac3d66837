import { Worker } from 'node:worker_threads'
import { moduleUrl } from '../../platform/module-url.ts'
import { type Bundle, readBundle } from './bundle.ts'
import { compilePolicies } from './compile.ts'
import { type CompileIssue, PolicyError } from './policy-error.ts'
import type { Verification } from './signatures.ts'
import type { Sources } from './sources.ts'
import type { PreparedEngine } from './wasm-runner.ts'

/**
 * Bundles that are large are read, checked and started in a thread: parsing three megabytes of documents takes some 300 ms, in which
 * no request would be served. What comes back is the memory in which they are parsed already.
 */

/** Unpacked bytes from which on a thread is worth its start; rules alone have up to some 400 kB. */
const large = 786_432

/** `readBundle`, off this thread when the bundle is large. Rejects with `PolicyError`. */
export const openBundle = async (bytes: Uint8Array, verification?: Verification): Promise<Bundle> =>
  unpackedSize(bytes) < large ? readBundle(bytes, verification) : inThread({ bytes, verification })

/** Compiles and opens; the work around the compiler is done off this thread when there are large documents. */
export const compileBundle = async (options: { sources: Sources; opa: string }): Promise<Bundle> => {
  const size = [...options.sources.values()].reduce((sum, { length }) => sum + length, 0)
  return size < large ? readBundle(await compilePolicies(options)) : inThread(options)
}

/** RFC 1952 §2.3.1: the last four bytes, modulo 2^32. A false one costs time only. */
const unpackedSize = (bytes: Uint8Array): number =>
  bytes.length < 18 ? 0 : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).readUInt32LE(bytes.length - 4)

/** What the thread is asked. */
export type OpenTask = { bytes: Uint8Array; verification: Verification | undefined } | { sources: Sources; opa: string }

/** A bundle, with documents as JSON and with an instance's memory after they were parsed. */
export type Opened = Omit<Bundle, 'data'> & { documents: Uint8Array<ArrayBuffer>; prepared: PreparedEngine }

export type OpenAnswer = { opened: Opened } | { failed: { message: string; issues: readonly CompileIssue[] } }

const inThread = (task: OpenTask): Promise<Bundle> =>
  new Promise((resolve, reject) => {
    const worker = new Worker(moduleUrl('./open-bundle-thread', import.meta.url), {
      workerData: task,
      execArgv: [],
      name: 'policy-bundle',
    })
    worker.once('message', (answer: OpenAnswer) => {
      if ('opened' in answer) resolve(bundleOf(answer.opened))
      else reject(new PolicyError(answer.failed.message, { issues: answer.failed.issues }))
      void worker.terminate()
    })
    worker.once('error', (cause) => reject(new PolicyError('the bundle cannot be opened', { cause })))
    worker.once('exit', () => reject(new PolicyError('the bundle cannot be opened: its thread ended')))
  })

const bundleOf = ({ documents, ...bundle }: Opened): Bundle => {
  let data: unknown
  return {
    ...bundle,
    /** Parsed when somebody asks; the engine does not. */
    get data() {
      data ??= JSON.parse(new TextDecoder().decode(documents))
      return data
    },
  }
}
