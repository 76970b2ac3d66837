import type { Value } from '../values.ts'
import { cryptoBuiltins } from './crypto.ts'
import { encodingBuiltins } from './encoding.ts'
import { jsonPatchBuiltins } from './json-patch.ts'
import { jsonSchemaBuiltins } from './json-schema.ts'
import { jwtBuiltins } from './jwt.ts'
import { netBuiltins } from './net.ts'
import { numberBuiltins } from './numbers.ts'
import { objectBuiltins } from './objects.ts'
import { printBuiltins } from './print.ts'
import { randomBuiltins } from './random.ts'
import { regexBuiltins } from './regex.ts'
import { semverBuiltins } from './semver.ts'
import { sprintfBuiltins } from './sprintf.ts'
import { stringBuiltins } from './strings.ts'
import { templateBuiltins } from './template.ts'
import { timeBuiltins } from './time.ts'
import { unitBuiltins } from './units.ts'
import { uriBuiltins } from './uri.ts'
import { x509Builtins } from './x509.ts'
import { yamlBuiltins } from './yaml.ts'

/**
 * What the host gives to policies beside OPA's built-in functions that are compiled into the WASM. `policies/capabilities.json`
 * lists exactly these and the native ones, so that a rule which uses another does not compile; a test compares the two.
 *
 * Answers with a value, or with `undefined` or by throwing `BuiltinError` where OPA has a built-in error: the expression is undefined.
 */
export type HostBuiltin = (args: readonly Value[], context: EvaluationContext) => Value | undefined

/** What stays the same during one evaluation. */
export interface EvaluationContext {
  /** Nanoseconds since 1970. */
  nowNs(): bigint
  /** Random bytes, the same for the same purpose and length. */
  random(purpose: string, length: number): Uint8Array
  print(line: string): void
}

export const hostBuiltins: Readonly<Record<string, HostBuiltin>> = {
  ...cryptoBuiltins,
  ...encodingBuiltins,
  ...jsonPatchBuiltins,
  ...jsonSchemaBuiltins,
  ...jwtBuiltins,
  ...netBuiltins,
  ...numberBuiltins,
  ...objectBuiltins,
  ...printBuiltins,
  ...randomBuiltins,
  ...regexBuiltins,
  ...semverBuiltins,
  ...sprintfBuiltins,
  ...stringBuiltins,
  ...templateBuiltins,
  ...timeBuiltins,
  ...unitBuiltins,
  ...uriBuiltins,
  ...x509Builtins,
  ...yamlBuiltins,
}
