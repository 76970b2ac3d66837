import type { BuiltinTable } from './builtin.ts'
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
import { x509Builtins } from './x509.ts'
import { yamlBuiltins } from './yaml.ts'

/**
 * The built-in functions that the host supplies beside those that OPA compiles into the WASM. `capabilities.json` lists
 * exactly these and the native ones, so that a rule which uses another does not compile; a test compares the two.
 */

/** By name, without those that are loaded where a policy needs them. */
const common: BuiltinTable = {
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
  ...x509Builtins,
  ...yamlBuiltins,
}

/** Their code is larger than all the others' together. */
const graphqlNames = ['is_valid', 'parse', 'parse_and_verify', 'parse_query', 'parse_schema', 'schema_is_valid'].map(
  (name) => `graphql.${name}`,
)

/** The names of all functions that the host can give. */
export const builtinNames: ReadonlySet<string> = new Set([...Object.keys(common), ...graphqlNames])

/** The functions that a policy which needs these names can be given, and others. */
export const loadBuiltins = async (needed: readonly string[]): Promise<BuiltinTable> => {
  if (!graphqlNames.some((name) => needed.includes(name))) return common
  const { graphqlBuiltins } = await import('./graphql.ts')
  return { ...common, ...graphqlBuiltins }
}
