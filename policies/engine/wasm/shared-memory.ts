import { numberBytes, readerOf, sectionsOf, withSections } from './binary.ts'

/**
 * OPA's compiler makes modules whose memory belongs to one thread. The same module imports a memory that threads hand
 * to each other once its import says so: `shared`, which needs a maximum (WebAssembly threads proposal).
 */
export const forSharedMemory = (wasm: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> => {
  const section = sectionsOf(wasm).find(({ name }) => name === 'import')
  if (!section) return wasm
  const reader = readerOf(wasm, section.start, section.end)
  let limits = 0
  let minimumEnd = 0
  reader.vector(() => {
    reader.name()
    reader.name()
    const kind = reader.byte()
    const { at } = reader
    // Functions are what modules of OPA import otherwise.
    if (kind === 2) {
      limits = at
      reader.byte()
    }
    reader.number()
    if (kind === 2) minimumEnd = reader.at
  })
  // One that imports no memory, or an unusual one, is for the linker to refuse.
  if (limits === 0 || wasm[limits] !== 0) return wasm
  return withSections(wasm, {
    import: Buffer.concat([
      wasm.subarray(section.start, limits),
      sharedWithMaximum,
      wasm.subarray(limits + 1, minimumEnd),
      Uint8Array.from(numberBytes(mostPages)),
      wasm.subarray(minimumEnd, section.end),
    ]),
  })
}

const sharedWithMaximum = Uint8Array.of(3)
/** As many as 32 bits address; what a memory may really have is said where it is made. */
const mostPages = 65_536
