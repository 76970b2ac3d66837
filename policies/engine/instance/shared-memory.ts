/**
 * OPA's compiler makes modules whose memory belongs to one thread. The same module imports a memory that threads hand
 * to each other once its import says so: `shared`, which needs a maximum (WebAssembly threads proposal; the binary
 * format is chapter 5 of the specification).
 */
export const forSharedMemory = (wasm: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> => {
  const section = sectionOf(wasm, 2)
  const limits = section && memoryLimits(wasm, section.start)
  // One that imports no memory, or an unusual one, is for `requireAbi` and the linker to refuse.
  if (!section || limits === undefined || wasm[limits] !== 0) return wasm
  const minimum = numberAt(wasm, limits + 1)
  const imports = Buffer.concat([
    wasm.subarray(section.start, limits),
    sharedWithMaximum,
    wasm.subarray(limits + 1, minimum.end),
    numberBytes(mostPages),
    wasm.subarray(minimum.end, section.end),
  ])
  const parts = [wasm.subarray(0, section.size), numberBytes(imports.length), imports, wasm.subarray(section.end)]
  return new Uint8Array(Buffer.concat(parts))
}

const sharedWithMaximum = Uint8Array.of(3)
/** As many as 32 bits address; what a memory may really have is said where it is made. */
const mostPages = 65_536

type Section = { size: number; start: number; end: number }

/** Where its size is written, and where its content starts and ends. */
const sectionOf = (wasm: Uint8Array, wanted: number): Section | undefined => {
  for (let at = '\0asm'.length + 4; at < wasm.length; ) {
    const length = numberAt(wasm, at + 1)
    const section = { size: at + 1, start: length.end, end: length.end + length.value }
    if (wasm[at] === wanted) return section
    at = section.end
  }
  return undefined
}

/** Where the limits of the imported memory are. Functions are what modules of OPA import otherwise. */
const memoryLimits = (wasm: Uint8Array, start: number): number | undefined => {
  const count = numberAt(wasm, start)
  let at = count.end
  for (let index = 0; index < count.value; index++) {
    const kind = nameEnd(wasm, nameEnd(wasm, at))
    if (wasm[kind] === 2) return kind + 1
    if (wasm[kind] !== 0) return undefined
    at = numberAt(wasm, kind + 1).end
  }
  return undefined
}

const nameEnd = (wasm: Uint8Array, at: number): number => {
  const length = numberAt(wasm, at)
  return length.end + length.value
}

/** LEB128, unsigned. */
const numberAt = (wasm: Uint8Array, at: number): { value: number; end: number } => {
  const byte = wasm[at] ?? 0
  if (byte < 0x80) return { value: byte, end: at + 1 }
  const rest = numberAt(wasm, at + 1)
  return { value: (byte & 0x7f) + rest.value * 0x80, end: rest.end }
}

const numberBytes = (value: number): Uint8Array =>
  value < 0x80 ? Uint8Array.of(value) : Uint8Array.of((value & 0x7f) | 0x80, ...numberBytes(Math.floor(value / 0x80)))
