/**
 * The part of the WebAssembly JavaScript interface that the engine uses; TypeScript declares it only together with the
 * DOM.
 */
declare namespace WebAssembly {
  function validate(bytes: Uint8Array<ArrayBuffer>): boolean
  class Module {
    constructor(bytes: Uint8Array<ArrayBuffer>)
  }
  class Instance {
    constructor(module: Module, imports: Record<string, Record<string, unknown>>)
    readonly exports: Record<string, unknown>
  }
  class Memory {
    /** Pages of 64 kB. */
    constructor(size: { initial: number; maximum?: number; shared?: boolean })
    readonly buffer: ArrayBuffer | SharedArrayBuffer
    grow(pages: number): number
  }
  interface Global {
    value: number
  }
}
