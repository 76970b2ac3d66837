/**
 * The policy engine: Rego rules → OPA bundle → decisions, in WebAssembly. It knows nothing of gateways, issuers or
 * their inputs, and everything else imports it from here.
 *
 *     const opa = await findOpa()
 *     const engine = await createWasmEngine(readBundle(await compilePolicies({ sources: await readSources('rules'), opa
 *     }))) engine.evaluate('example/decision', { user: 'alice' })
 */

export type { InputPaths, InputReads } from './base/input-reads.ts'
export {
  type CompileIssue,
  CompilerMissing,
  issueLine,
  PolicyBusy,
  PolicyError,
  type PolicyErrorCode,
  UnitsUsedUp,
} from './base/policy-error.ts'
export { type Bundle, type Compiled, publishBundle, readBundle, writeBundle } from './bundle/bundle.ts'
export { type BundleKey, type SignatureAlgorithm, signatureAlgorithms, type Verification } from './bundle/signatures.ts'
export { suppliedCapabilities } from './compile/capabilities.ts'
export {
  allDone,
  capabilitiesFile,
  checkIssues,
  compilePolicies,
  planPolicies,
  withSources,
} from './compile/compile.ts'
export { inputReads } from './compile/find-input-reads.ts'
export { findOpa, type Opa, runOpa } from './compile/opa.ts'
export { firstDifference, hashSources, isTest, listSources, readSources, type Sources } from './compile/sources.ts'
export { createWasmEngine, loadWasmEngine, type WasmEngine } from './evaluate/engine.ts'
export { defaultUnits, type EngineLimits, type PreparedEngine, prepareEngine } from './instance/runner.ts'
export { type Isolation, type IsolationOptions, startIsolation, unitsOfDeadline } from './threads/isolation.ts'
export { compileBundle, openBundle, reuseCompiled } from './threads/open-bundle.ts'
