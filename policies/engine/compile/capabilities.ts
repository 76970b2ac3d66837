import { z } from 'zod'
import { PolicyError } from '../base/policy-error.ts'
import { builtinNames } from '../builtins/index.ts'
import { readBundle } from '../bundle/bundle.ts'
import { prepareEngine } from '../instance/runner.ts'
import { compilePolicies } from './compile.ts'
import { runOpa } from './opa.ts'

const capabilitiesSchema = z.looseObject({
  builtins: z.array(
    z.looseObject({
      name: z.string(),
      infix: z.string().optional(),
      deprecated: z.boolean().optional(),
      decl: z.looseObject({ args: z.array(z.unknown()).optional() }),
    }),
  ),
  wasm_abi_versions: z.unknown(),
  features: z.unknown(),
})

/** OPA compiles these away or turns them into WASM of their own; they cannot be called by name in a probe. */
const compiledAway = ['assign', 'eq', 'print', 'walk']

/**
 * What `policies/engine/capabilities.json` must hold: of this OPA's built-in functions those that its WASM contains or
 * that the host supplies, without deprecated ones. Which ones WASM contains is found out by compiling a rule that calls
 * all of them.
 */
export const suppliedCapabilities = async (opa: string) => {
  const current = await runOpa(opa, ['capabilities', '--current'])
  if (current.code !== 0) throw new PolicyError('OPA does not tell its capabilities')
  const { builtins, wasm_abi_versions, features } = capabilitiesSchema.parse(JSON.parse(current.stdout))
  const living = builtins.filter(({ deprecated }) => !deprecated)
  const callable = living.filter(
    ({ name, infix }) => infix === undefined && !name.startsWith('internal.') && !compiledAway.includes(name),
  )
  const rules = callable.map(({ name, decl }, index) => {
    const args = (decl.args ?? []).map((_, position) => `input.argument${position}`)
    return `values contains [${index}, value] if value := ${name}(${args.join(', ')})`
  })
  const probe = ['package probe', '# METADATA\n# entrypoint: true\ndecision := values', ...rules].join('\n\n')
  const bundle = await compilePolicies({
    sources: new Map([['probe.rego', new TextEncoder().encode(probe)]]),
    opa,
    capabilities: null,
  })
  const needed = Object.values(prepareEngine(readBundle(bundle)).image.builtins)
  const left = new Set(needed.filter((name) => !builtinNames.has(name)))
  return {
    // Schemas in metadata may refer to others: the compiler asks nobody for them.
    allow_net: [],
    builtins: living.filter(({ name }) => !left.has(name)).map(withoutProse),
    future_keywords: [],
    wasm_abi_versions,
    features,
  }
}

/** Descriptions are most of the file and mean nothing to the compiler. */
const withoutProse = <Value>(value: Value): Value =>
  JSON.parse(
    JSON.stringify(value, (key, member) =>
      ['description', 'categories', 'introduced'].includes(key) ? undefined : member,
    ),
  )
