import { gunzipSync } from 'node:zlib'
import { moduleUrl } from '../../../platform/module-url.ts'
import { startWorkerThread } from '../../../platform/worker-thread.ts'
import { type CompileIssue, PolicyError } from '../base/policy-error.ts'
import { type Bundle, type Compiled, readBundle } from '../bundle/bundle.ts'
import type { Verification } from '../bundle/signatures.ts'
import { compilePolicies } from '../compile/compile.ts'
import { withNewDocuments } from '../compile/replace-documents.ts'
import { hashSources, isDocument, type Sources } from '../compile/sources.ts'
import type { PreparedEngine } from '../instance/runner.ts'

/**
 * Bundles that are large are read, checked and started in a thread: parsing three megabytes of documents takes some 100
 * ms, metering a module with regular expressions some 30, in which no request would be served. What comes back is the
 * memory in which they are parsed already, without a copy.
 */

/** Unpacked bytes from which on a thread is worth its start; rules have 140 kB, with regular expressions 330. */
const large = 262_144

/** `readBundle`, off this thread when the bundle is large. Rejects with `PolicyError`. */
export const openBundle = async (bytes: Uint8Array, verification?: Verification): Promise<Bundle> =>
  isLarge(bytes) ? inThread({ bytes, verification }) : readBundle(bytes, verification)

/** Compiles and opens; the work around the compiler is done off this thread when there are large documents. */
export const compileBundle = async (options: { sources: Sources; opa: string }): Promise<Bundle> =>
  sizeOf(options.sources) < large ? openBundle(await compilePolicies(options)) : inThread(options)

/**
 * What the compiler would make of these sources, without it: the rules are those of `compiled`, and only documents
 * differ, which the module does not depend on. Undefined where it needs to be asked: for other rules, for YAML, and to
 * say what is wrong.
 */
export const reuseCompiled = async (compiled: Compiled, sources: Sources): Promise<Bundle | undefined> => {
  if (!hasSameRules(compiled.built.sources, sources)) return undefined
  try {
    const size = sizeOf(sources) + compiled.wasm.length
    return size < large ? withNewDocuments(compiled, sources) : await inThread({ compiled, sources })
  } catch {
    return undefined
  }
}

const hasSameRules = (before: Readonly<Record<string, string>>, sources: Sources): boolean => {
  const rules = new Map([...sources].filter(([name]) => !isDocument(name)))
  const known = Object.keys(before).filter((name) => !isDocument(name))
  if (known.length !== rules.size || [...sources.keys()].some((name) => /\.ya?ml$/.test(name))) return false
  return Object.entries(hashSources(rules)).every(([name, hash]) => before[name] === hash)
}

const sizeOf = (sources: Sources): number => [...sources.values()].reduce((sum, { length }) => sum + length, 0)

/** By unpacking: what a file says of its own size may be false. What cannot be read is for the thread to refuse. */
const isLarge = (bytes: Uint8Array): boolean => {
  try {
    gunzipSync(bytes, { maxOutputLength: large })
    return false
  } catch {
    return true
  }
}

/** What the thread is asked. */
export type OpenTask =
  | { bytes: Uint8Array; verification: Verification | undefined }
  | { sources: Sources; opa: string }
  | { sources: Sources; compiled: Compiled }

/** A bundle, with documents as JSON and parsed in a memory that this thread takes over. */
export type Opened = Omit<Bundle, 'data'> & { documents: Uint8Array<ArrayBuffer>; prepared: PreparedEngine }

export type OpenAnswer = { opened: Opened } | { failed: { message: string; issues: readonly CompileIssue[] } }

/** The task of a number is answered with the same one. */
export type ToThread = { id: number; task: OpenTask }
export type FromThread = { id: number; answer: OpenAnswer }

const inThread = async (task: OpenTask): Promise<Bundle> => {
  thread ??= startThread(() => {
    thread = undefined
  })
  const answer = await thread(task)
  if ('opened' in answer) return bundleOf(answer.opened)
  throw new PolicyError(answer.failed.message, { issues: answer.failed.issues })
}

/** One for all, kept for the next edit: its start would cost more than documents of three megabytes. */
let thread: ((task: OpenTask) => Promise<OpenAnswer>) | undefined
/** Milliseconds without a task after which it ends. */
const keptFor = 30_000

const startThread = (onEnd: () => void): ((task: OpenTask) => Promise<OpenAnswer>) => {
  const worker = startWorkerThread(moduleUrl('./open-bundle-thread', import.meta.url), { name: 'policy-bundle' })
  const asked = new Map<number, { resolve: (answer: OpenAnswer) => void; reject: (error: PolicyError) => void }>()
  let last = 0
  let timer: NodeJS.Timeout | undefined

  const fail = (cause?: unknown): void => {
    clearTimeout(timer)
    onEnd()
    for (const { reject } of asked.values()) reject(new PolicyError('the bundle cannot be opened', { cause }))
    asked.clear()
  }
  const rest = (): void => {
    // It keeps no process alive.
    worker.unref()
    timer = setTimeout(() => {
      onEnd()
      void worker.terminate()
    }, keptFor).unref()
  }
  worker.on('message', ({ id, answer }: FromThread) => {
    asked.get(id)?.resolve(answer)
    asked.delete(id)
    if (asked.size === 0) rest()
  })
  worker.on('error', fail)
  worker.on('exit', () => fail())

  return (task) =>
    new Promise((resolve, reject) => {
      clearTimeout(timer)
      worker.ref()
      asked.set(++last, { resolve, reject })
      worker.postMessage({ id: last, task } satisfies ToThread)
    })
}

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
