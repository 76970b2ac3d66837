import { printBuiltins } from './print.ts'
import { stringBuiltins } from './strings.ts'
import { timeBuiltins } from './time.ts'

/**
 * What the host gives to policies beside OPA's built-in functions that are compiled into the WASM. `policies/capabilities.json`
 * lists exactly these and the native ones, so that a rule which uses another does not compile; a test compares the two.
 */
export type HostBuiltin = (args: readonly unknown[], context: EvaluationContext) => unknown

/** What stays the same during one evaluation. */
export interface EvaluationContext {
  /** Nanoseconds since 1970. */
  nowNs(): bigint
  print(line: string): void
}

/** Given JSON values (sets arrive as arrays), they return one, or `undefined` where OPA has a built-in error: the expression is undefined. */
export const hostBuiltins: Readonly<Record<string, HostBuiltin>> = {
  ...printBuiltins,
  ...stringBuiltins,
  ...timeBuiltins,
}
