import { createHash } from 'node:crypto'
import { gunzipSync, gzipSync } from 'node:zlib'
import { z } from 'zod'
import { inputReadsSchema } from './input-reads.ts'
import { PolicyError } from './policy-error.ts'
import { readTar, writeTar } from './tar.ts'

/** A compiled policy: the WASM module, its documents, and what the manifest says about them. */
export interface Bundle {
  revision: string
  wasm: Uint8Array<ArrayBuffer>
  data: unknown
  /** What `compile.ts` recorded; absent when another tool made the bundle or anything in it was changed since. */
  built?: BuiltFrom
}

/** `sources` is the SHA-256 of every source file by its path, so that a bundle serves without a compiler while its sources are unchanged. */
const builtFrom = z.object({
  compiler: z.string(),
  sources: z.record(z.string(), z.string()),
  /** What each entrypoint reads of its input; see `input-reads.ts`. */
  reads: z.record(z.string(), inputReadsSchema).optional(),
})
export type BuiltFrom = z.infer<typeof builtFrom>

/** `contents` ties the record to the files beside it: with others, what it says about rules and reads would be wrong. */
const stampSchema = builtFrom.extend({ contents: z.string() })

const manifestFile = '.manifest'
const wasmFile = 'policy.wasm'

const manifestSchema = z.looseObject({
  revision: z.string().default(''),
  wasm: z.array(z.looseObject({ entrypoint: z.string(), module: z.string() })).min(1),
  metadata: z.looseObject({ surrogate: z.unknown() }).optional(),
})

/** Bytes of a bundle, unpacked. */
const largestBundle = 67_108_864

/** Reads an OPA bundle (`.tar.gz` with `policy.wasm`). Throws `PolicyError` saying what is wrong with it. */
export const readBundle = (bytes: Uint8Array): Bundle => {
  const files = unpack(bytes)
  const wasm = files.get(wasmFile)
  if (!wasm) throw new PolicyError(`the bundle holds no ${wasmFile}: build it with "surrogate policy build"`)
  const manifest = manifestSchema.safeParse(jsonFile(files, manifestFile) ?? {})
  if (!manifest.success) throw new PolicyError('the manifest of the bundle is not valid', { cause: manifest.error })
  const { revision, wasm: modules, metadata } = manifest.data
  if (modules.some(({ module }) => module.replace(/^\//, '') !== wasmFile)) {
    throw new PolicyError(`the bundle holds more modules than ${wasmFile}; one is supported`)
  }
  const stamp = stampSchema.safeParse(metadata?.surrogate)
  const genuine = stamp.success && stamp.data.contents === contentsOf(files)
  return { revision, wasm, data: dataOf(files), ...(genuine && { built: stamp.data }) }
}

/** The same bundle with a revision and its origin in the manifest, and with the same bytes whenever the contents are the same. */
export const stampBundle = (bytes: Uint8Array, stamp: { revision: string; built: BuiltFrom }): Uint8Array => {
  const files = unpack(bytes)
  const manifest = manifestSchema.parse(jsonFile(files, manifestFile))
  const stamped = {
    ...manifest,
    revision: stamp.revision,
    metadata: { ...manifest.metadata, surrogate: { ...stamp.built, contents: contentsOf(files) } },
  }
  files.set(manifestFile, new TextEncoder().encode(`${JSON.stringify(stamped, null, 2)}\n`))
  return gzipSync(writeTar(files), { level: 9 })
}

/** SHA-256 (hex) of all files but the manifest. */
const contentsOf = (files: ReadonlyMap<string, Uint8Array>): string => {
  const others = new Map([...files].filter(([name]) => name !== manifestFile))
  return createHash('sha256').update(writeTar(others)).digest('hex')
}

/** The files of a bundle by name. */
export const unpack = (bytes: Uint8Array): Map<string, Uint8Array<ArrayBuffer>> => {
  try {
    return readTar(gunzipSync(bytes, { maxOutputLength: largestBundle }))
  } catch (error) {
    throw new PolicyError(`this is not a readable bundle: ${(error as Error).message}`, { cause: error })
  }
}

const jsonFile = (files: ReadonlyMap<string, Uint8Array>, name: string): unknown => {
  const content = files.get(name)
  if (!content) return undefined
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(content))
  } catch (error) {
    throw new PolicyError(`${name} in the bundle is not valid JSON`, { cause: error })
  }
}

/** `a/b/data.json` is the document at `data.a.b`; deeper files are merged into shallower ones. */
const dataOf = (files: ReadonlyMap<string, Uint8Array>): unknown => {
  const names = [...files.keys()].filter((name) => name === 'data.json' || name.endsWith('/data.json'))
  const root: Record<string, unknown> = {}
  for (const name of names.sort((a, b) => a.split('/').length - b.split('/').length)) {
    const document = jsonFile(files, name)
    let at = root
    for (const key of name.split('/').slice(0, -1)) {
      if (!Object.hasOwn(at, key)) setMember(at, key, {})
      const next = at[key]
      if (!isObject(next)) throw new PolicyError(`${name} in the bundle overlaps other data`)
      at = next
    }
    if (!isObject(document)) throw new PolicyError(`${name} in the bundle is not a JSON object`)
    for (const [key, value] of Object.entries(document)) setMember(at, key, value)
  }
  return root
}

/** An assignment to `__proto__` would not make a member. */
const setMember = (object: object, key: string, value: unknown): void => {
  Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
