import { createHash } from 'node:crypto'
import { gunzipSync, gzipSync } from 'node:zlib'
import { z } from 'zod'
import { inputPathsSchema, inputReadsSchema } from '../base/input-reads.ts'
import { PolicyError } from '../base/policy-error.ts'
import type { PreparedEngine } from '../instance/runner.ts'
import { documentsOf, jsonFile } from './documents.ts'
import { signatureOf, signaturesFile, type Verification, verifyBundle } from './signatures.ts'
import { readTar, writeTar } from './tar.ts'

/** A compiled policy: the WASM module, its documents, and what the manifest says about them. */
export interface Bundle {
  revision: string
  /**
   * Grows from one published bundle to the next (`metadata.serial` of the manifest): with it an older one is known as
   * such.
   */
  serial?: number
  wasm: Uint8Array<ArrayBuffer>
  data: unknown
  /** Where the bundle was opened in a thread: for one `loadWasmEngine`, which takes over the memory. */
  prepared?: PreparedEngine
  /** What `compile.ts` recorded; absent when another tool made the bundle or anything in it was changed since. */
  built?: BuiltFrom
}

/** A module and what it was compiled from: what is left of a bundle when its documents are replaced. */
export type Compiled = Required<Pick<Bundle, 'wasm' | 'built'>>

/**
 * `sources` is the SHA-256 of every source file by its path, so that a bundle serves without a compiler while its
 * sources are unchanged.
 */
const builtFrom = z.object({
  compiler: z.string(),
  sources: z.record(z.string(), z.string()),
  /** What each entrypoint reads of its input; see `input-reads.ts`. */
  reads: z.record(z.string(), inputReadsSchema).optional(),
  /** The same as deep as it is known; absent in bundles of older versions. */
  paths: z.record(z.string(), inputPathsSchema).optional(),
})
export type BuiltFrom = z.infer<typeof builtFrom>

/**
 * `contents` ties the record to the files beside it: with others, what it says about rules and reads would be wrong.
 */
const stampSchema = builtFrom.extend({ contents: z.string() })

const manifestFile = '.manifest'
const wasmFile = 'policy.wasm'

const manifestSchema = z.looseObject({
  revision: z.string().default(''),
  wasm: z.array(z.looseObject({ entrypoint: z.string(), module: z.string() })).min(1),
  metadata: z.looseObject({ surrogate: z.unknown(), serial: z.int().nonnegative().optional() }).optional(),
})

/** Bytes of a bundle, unpacked. */
const largestBundle = 67_108_864

/**
 * Reads an OPA bundle (`.tar.gz` with `policy.wasm`). Throws `PolicyError` saying what is wrong with it; with
 * `verification` also when it is not signed as that asks.
 */
export const readBundle = (bytes: Uint8Array, verification?: Verification): Bundle => {
  const files = unpack(bytes)
  if (verification) verifyBundle(files, verification)
  const wasm = files.get(wasmFile)
  if (!wasm) throw new PolicyError(`the bundle holds no ${wasmFile}: build it with "surrogate policy build"`)
  const manifest = manifestSchema.safeParse(jsonFile(files, manifestFile) ?? {})
  if (!manifest.success) throw new PolicyError('the manifest of the bundle is not valid', { cause: manifest.error })
  const { revision, wasm: modules, metadata: { serial, surrogate } = {} } = manifest.data
  if (modules.some(({ module }) => module.replace(/^\//, '') !== wasmFile)) {
    throw new PolicyError(`the bundle holds more modules than ${wasmFile}; one is supported`)
  }
  const stamp = stampSchema.safeParse(surrogate)
  const genuine = stamp.success && stamp.data.contents === contentsOf(files)
  return {
    revision,
    ...(serial !== undefined && { serial }),
    wasm,
    data: documentsOf(files),
    ...(genuine && { built: stamp.data }),
  }
}

/**
 * The same bundle with a revision and its origin in the manifest, and with the same bytes whenever the contents are the
 * same.
 */
export const stampBundle = (bytes: Uint8Array, stamp: { revision: string; built: BuiltFrom }): Uint8Array => {
  const files = unpack(bytes)
  const manifest = manifestSchema.parse(jsonFile(files, manifestFile))
  const stamped = {
    ...manifest,
    revision: stamp.revision,
    metadata: { ...manifest.metadata, surrogate: { ...stamp.built, contents: contentsOf(files) } },
  }
  files.set(manifestFile, jsonBytes(stamped))
  return pack(files)
}

/** The same bundle for publishing: with a serial number, and signed when a key is given. */
export const publishBundle = (
  bytes: Uint8Array,
  { serial, key }: { serial?: number | undefined; key?: Parameters<typeof signatureOf>[1] | undefined },
): Uint8Array => {
  const files = unpack(bytes)
  const manifest = manifestSchema.parse(jsonFile(files, manifestFile))
  if (serial !== undefined) {
    files.set(manifestFile, jsonBytes({ ...manifest, metadata: { ...manifest.metadata, serial } }))
  }
  files.delete(signaturesFile)
  if (key) files.set(signaturesFile, new Uint8Array(signatureOf(files, key)))
  return pack(files)
}

/** The bytes of a bundle that was read or compiled: reading them gives the same one. */
export const writeBundle = ({
  revision,
  serial,
  wasm,
  data,
  built,
}: Omit<Bundle, 'prepared'>): Uint8Array<ArrayBuffer> => {
  const files = new Map<string, Uint8Array>([
    [wasmFile, wasm],
    ['data.json', new TextEncoder().encode(JSON.stringify(data))],
  ])
  const surrogate = built && { ...built, contents: contentsOf(files) }
  const modules = [{ entrypoint: 'all', module: `/${wasmFile}` }]
  files.set(manifestFile, jsonBytes({ revision, wasm: modules, metadata: { serial, surrogate } }))
  return new Uint8Array(gzipSync(writeTar(files, { root: '/' }), { level: 1 }))
}

/** SHA-256 (hex) of all files but the manifest and the signature, which is made last. */
const contentsOf = (files: ReadonlyMap<string, Uint8Array>): string => {
  const others = new Map([...files].filter(([name]) => name !== manifestFile && name !== signaturesFile))
  return createHash('sha256').update(writeTar(others)).digest('hex')
}

const jsonBytes = (value: unknown) => new TextEncoder().encode(`${JSON.stringify(value, null, 2)}\n`)

const pack = (files: ReadonlyMap<string, Uint8Array>) => gzipSync(writeTar(files, { root: '/' }), { level: 9 })

/** The files of a bundle by name. */
export const unpack = (bytes: Uint8Array): Map<string, Uint8Array<ArrayBuffer>> => {
  try {
    return readTar(gunzipSync(bytes, { maxOutputLength: largestBundle }))
  } catch (error) {
    throw new PolicyError(`this is not a readable bundle: ${(error as Error).message}`, { cause: error })
  }
}
