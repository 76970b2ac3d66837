import { PolicyError } from '../base/policy-error.ts'
import { mostUnits, unitsExport } from '../wasm/meter.ts'
import { type LinkedModule, link } from './abi.ts'
import { aligned, pages, sharedCopy } from './memory.ts'

/**
 * A memory with its documents parsed. Instances start from it without parsing them again, in a new memory or in that of
 * an instance that threw: globals (the shadow stack's pointer among them) belong to instances, so a new instance in an
 * old memory is sound.
 */
export interface MemoryImage {
  /** The memory below the documents: the module's own variables and its stack. */
  own: Uint8Array<SharedArrayBuffer>
  /**
   * The parsed documents, from there to `heap`, which no evaluation changes. Shared: other threads need no copy to
   * start from.
   */
  documents: Uint8Array<SharedArrayBuffer>
  /** The parsed documents. Address. */
  data: number
  /** Where each evaluation puts its input. Address, a multiple of 8. */
  heap: number
  /** Of the whole memory, with the room for evaluations. Bytes. */
  size: number
  entrypoints: Readonly<Record<string, number>>
  /** Names by the number under which the module calls them. */
  builtins: readonly string[]
}

/** Bytes. */
export interface ImageLimits {
  /** What one evaluation may use beside the documents, its input included. */
  room: number
  /** Of the whole memory. */
  memory: number
}

/**
 * Parses the documents, which are JSON. Throws `PolicyError` when the module is no policy, and when the documents are
 * not valid or too large.
 * @param keep puts the parsed documents where other threads can read them; is given the whole memory.
 */
export const loadImage = (
  module: WebAssembly.Module,
  json: Uint8Array,
  limits: ImageLimits,
  keep = sharedCopy,
): MemoryImage => {
  const memory = new WebAssembly.Memory({ initial: pages(firstSize), maximum: pages(limits.memory) })
  try {
    return parse(link(module, memory, { callBuiltin: refuse, print: refuse }), json, limits, keep)
  } catch (error) {
    if (error instanceof PolicyError) throw error
    throw new PolicyError(`the policy cannot be started within ${limits.memory} bytes`, { cause: error })
  }
}

/** Enough for every module's own variables; it grows by itself. Bytes. */
const firstSize = 1_048_576

/** Twice what is needed, and for each byte four times what the most expensive documents take, lists of digits. */
const unitsToStart = 10_000_000
const unitsToLoad = 200

const refuse = (): never => {
  throw new PolicyError('the module evaluates something while it is loaded')
}

/** Names and small numbers: some are indices of a list. */
const numbered = (table: object): Record<string, number> => {
  if (Object.values(table).every((id) => Number.isInteger(id) && id >= 0 && id <= 65_535)) {
    return table as Record<string, number>
  }
  throw new PolicyError('the module numbers its functions or entrypoints in no known way')
}

const parse = (
  { exports, bytes, textAt, write }: LinkedModule,
  json: Uint8Array,
  { room }: ImageLimits,
  keep: typeof sharedCopy,
): MemoryImage => {
  exports[unitsExport].value = Math.min(mostUnits, unitsToStart + unitsToLoad * json.length)
  const readJson = (value: number): object => JSON.parse(textAt(exports.opa_json_dump(value))) as object
  const builtins: string[] = []
  for (const [name, id] of Object.entries(numbered(readJson(exports.builtins())))) builtins[id] = name
  const entrypoints = numbered(readJson(exports.entrypoints()))

  const start = exports.opa_heap_ptr_get()
  const data = write(json, exports.opa_json_parse)
  const heap = aligned(exports.opa_heap_ptr_get())
  // The module must ask for the room itself: it counts what it has, and would grow its memory again.
  exports.opa_malloc(room)
  exports.opa_heap_ptr_set(heap)
  const all = bytes()
  if (all.length < heap + room) throw new RangeError('there is no room for evaluations')
  const [own, documents] = [sharedCopy(all, 0, start), keep(all, start, heap)]
  return { own, documents, data, heap, size: all.length, entrypoints, builtins }
}
