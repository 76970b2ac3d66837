/** What TypeScript declares only together with the DOM (see `policies/engine/webassembly.d.ts`). */
declare namespace WebAssembly {
  function compile(bytes: Uint8Array): Promise<Module>
}
