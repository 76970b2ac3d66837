import { PolicyError } from '../base/policy-error.ts'
import { metered } from '../wasm/meter.ts'
import { forSharedMemory } from '../wasm/shared-memory.ts'

/**
 * A module that counts its work (see `wasm/meter.ts`), for a memory of its own or one that threads share. Throws
 * `PolicyError` when the bytes are not WebAssembly, or hold what the meter does not know.
 */
export const compileModule = (
  wasm: Uint8Array<ArrayBuffer>,
  { shared = false }: { shared?: boolean } = {},
): WebAssembly.Module => {
  // First as it is: what is added could make an invalid module valid.
  if (!WebAssembly.validate(wasm)) throw new PolicyError('the bundle holds no valid WebAssembly module')
  try {
    return new WebAssembly.Module(shared ? forSharedMemory(metered(wasm)) : metered(wasm))
  } catch (error) {
    if (error instanceof PolicyError) throw error
    throw new PolicyError('the bundle holds a WebAssembly module that cannot be used', { cause: error })
  }
}
