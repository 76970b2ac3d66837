import { readFile, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { silentLogger } from '../../platform/logger.ts'
import { loadPolicies, PolicyError, type PolicySet } from '../../policies/decide.ts'
import { compilePolicies, openBundle, readSources, type Sources } from '../../policies/engine/index.ts'
import { policySet } from '../../policies/policy-set.ts'
import { type Invocation, UsageError } from './invocation.ts'

/** As `policy serve` allows by default, in bytes. */
const input = 1_048_576

/**
 * The rules of `--data` and `--bundle`, compiled with the rule of this path as an entrypoint; or one compiled bundle,
 * which needs no compiler and answers for the entrypoints that it has.
 */
export const policiesFor = async ({ lists, opa }: Invocation, path: string): Promise<PolicySet> => {
  const named = [...(lists['data'] ?? []), ...(lists['bundle'] ?? [])]
  const places = named.length === 0 ? ['policies'] : named
  const bundles = places.filter((place) => /\.(?:tar\.gz|tgz)$/.test(place))
  if (bundles.length > 0 && places.length > 1)
    throw new UsageError('a compiled bundle cannot be put together with others')
  const common = { logger: silentLogger, input, remember: false }
  if (bundles[0] !== undefined) return loadPolicies({ path: bundles[0], ...common })

  const sources = merged(await Promise.all(places.map(sourcesOf)))
  const compiled = await compilePolicies({ sources, opa: await opa(), entrypoints: [path] })
  return policySet(await openBundle(compiled), common)
}

/** Of a folder, or of one file. */
const sourcesOf = async (place: string): Promise<Sources> => {
  const found = await stat(place).catch((cause: unknown) => {
    throw new PolicyError(`${place} cannot be read`, { cause })
  })
  if (found.isDirectory()) return readSources(place)
  const name = basename(place)
  if (!/\.rego$|^data\.(?:json|ya?ml)$/.test(name)) throw new PolicyError(`${place} is no folder, .rego or data.json`)
  return new Map([[name, await readFile(place)]])
}

/** Rules may stand in any file; documents stand where their file is, so that two of one name contradict each other. */
const merged = (all: readonly Sources[]): Sources => {
  const sources = new Map<string, Uint8Array>()
  for (const [index, one] of all.entries()) {
    for (const [name, content] of one) {
      const taken = sources.has(name)
      if (taken && !name.endsWith('.rego')) throw new PolicyError(`${name} is there twice`)
      sources.set(taken ? `${index + 1}/${name}` : name, content)
    }
  }
  return sources
}
