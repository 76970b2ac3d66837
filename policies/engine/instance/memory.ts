/** Bytes of a page of WASM memory. */
export const pageBytes = 65_536
export const pages = (bytes: number): number => Math.ceil(bytes / pageBytes)

/**
 * V8 counts no shared memory, so nothing would tell it that those of replaced instances are worth collecting. A memory
 * of the same size that is never touched, and so takes addresses only, is counted in its place for as long as this
 * thread holds it.
 */
const weights = new WeakMap<WebAssembly.Memory, WebAssembly.Memory>()
export const weigh = (memory: WebAssembly.Memory): void => {
  if (!(memory.buffer instanceof SharedArrayBuffer) || weights.has(memory)) return
  weights.set(memory, new WebAssembly.Memory({ initial: pages(memory.buffer.byteLength) }))
}

export const sharedCopy = (memory: ArrayBufferLike, start: number, end: number): Uint8Array<SharedArrayBuffer> => {
  const copy = new Uint8Array(new SharedArrayBuffer(end - start))
  copy.set(new Uint8Array(memory, start, end - start))
  return copy
}

export const sharedPart = (memory: ArrayBufferLike, start: number, end: number): Uint8Array<SharedArrayBuffer> =>
  new Uint8Array(memory as SharedArrayBuffer, start, end - start)
