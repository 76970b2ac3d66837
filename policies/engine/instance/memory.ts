/** Of WebAssembly's 64 kB. */
export const pages = (bytes: number): number => Math.ceil(bytes / 65_536)

export const aligned = (address: number): number => (address + 7) & ~7

/** The bytes between the two addresses, where other threads can read them. */
export const sharedCopy = (bytes: Uint8Array, start: number, end: number): Uint8Array<SharedArrayBuffer> => {
  const copy = new Uint8Array(new SharedArrayBuffer(end - start))
  copy.set(bytes.subarray(start, end))
  return copy
}

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
