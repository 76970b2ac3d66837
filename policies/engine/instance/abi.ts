import { PolicyError } from '../base/policy-error.ts'
import { unitsExport } from '../wasm/meter.ts'

/** The exports that are used. Addresses and lengths are numbers; 0 is NULL. */
export interface Exports {
  opa_wasm_abi_version: WebAssembly.Global
  opa_wasm_abi_minor_version: WebAssembly.Global
  builtins(): number
  entrypoints(): number
  opa_malloc(size: number): number
  opa_json_parse(address: number, length: number): number
  opa_json_dump(value: number): number
  /** Like the two above for values of any kind: see `values/text.ts`. */
  opa_value_parse(address: number, length: number): number
  opa_value_dump(value: number): number
  opa_heap_ptr_get(): number
  opa_heap_ptr_set(address: number): void
  opa_eval(
    reserved: 0,
    entrypoint: number,
    data: number,
    input: number,
    inputLength: number,
    heap: number,
    format: 0 | 1,
  ): number
  /** What may still be spent: see `wasm/meter.ts`. */
  [unitsExport]: WebAssembly.Global
}

/** A module of OPA (WASM ABI 1.2 or a later 1.x) in a memory. */
export interface LinkedModule {
  exports: Exports
  /** The memory as it is now: growing it detaches the bytes that were there before. */
  bytes(): Buffer
  /** Up to a NUL. Throws `PolicyError` for a longer one than `most` bytes (default 16 MB), or one without an end. */
  textAt(address: number, most?: number): string
  /** What `parse` makes of the bytes. Throws `PolicyError` when it cannot. */
  write(encoded: Uint8Array, parse: (address: number, length: number) => number): number
}

export const link = (
  module: WebAssembly.Module,
  memory: WebAssembly.Memory,
  host: {
    /** The number of a built-in function, something reserved, and the addresses of its operands. */
    callBuiltin(id: number, reserved: number, ...operands: number[]): number
    print(line: string): void
  },
): LinkedModule => {
  let view = Buffer.from(memory.buffer)
  const bytes = (): Buffer => {
    if (view.buffer !== memory.buffer) view = Buffer.from(memory.buffer)
    return view
  }
  const textAt = (address: number, most = longestText): string => {
    const text = bytes().subarray(address, address + most + 1)
    const length = text.indexOf(0)
    if (length === -1) throw new PolicyError(`a text of the policy is larger than ${most} bytes`, { code: 'failed' })
    return text.toString('utf8', 0, length)
  }
  const { callBuiltin } = host
  const { exports } = new WebAssembly.Instance(module, {
    env: {
      memory,
      opa_abort: (message: number) => {
        const text = textAt(message)
        throw new PolicyError(text, { code: text.startsWith(noMemory) ? 'memory_used_up' : 'failed' })
      },
      opa_println: (line: number) => host.print(textAt(line)),
      opa_builtin0: callBuiltin,
      opa_builtin1: callBuiltin,
      opa_builtin2: callBuiltin,
      opa_builtin3: callBuiltin,
      opa_builtin4: callBuiltin,
    },
  }) as unknown as { exports: Exports }
  requireAbi(exports)
  return {
    exports,
    bytes,
    textAt,
    write(encoded, parse) {
      const address = exports.opa_malloc(encoded.length)
      bytes().set(encoded, address)
      const parsed = parse(address, encoded.length)
      if (parsed === 0) throw new PolicyError('a value is not valid for the policy', { code: 'failed' })
      return parsed
    },
  }
}

/** How the module begins its last words when the memory cannot grow any more. */
const noMemory = 'opa_malloc'

/** Bytes. What a text costs is paid when its end is found. */
const longestText = 16_777_216

const requireAbi = (exports: Exports): void => {
  const version = exports.opa_wasm_abi_version?.value
  const minor = exports.opa_wasm_abi_minor_version?.value
  if (version !== 1 || !(minor >= 2)) {
    throw new PolicyError(`the module speaks OPA's WASM ABI ${version}.${minor}; 1.2 or a later 1.x is needed`)
  }
}
