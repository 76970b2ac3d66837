import { sectionsOf, withSections } from '../../../policies/engine/wasm/binary.ts'
import { metered } from '../../../policies/engine/wasm/meter.ts'

/** The module with the instructions as they were, and what the host expects of a metered one. */
export const unmetered = (wasm: Uint8Array<ArrayBuffer>): WebAssembly.Module => {
  const { start, end } = sectionsOf(wasm).find(({ name }) => name === 'code')!
  return new WebAssembly.Module(withSections(metered(wasm), { code: wasm.subarray(start, end) }))
}
