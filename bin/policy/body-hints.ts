import { loadGatewayConfig } from '../../gateway/config/load.ts'
import { readersOfBody } from '../../policies/authoring/body-reads.ts'
import { planPolicies, readSources } from '../../policies/engine/index.ts'
import type { Invocation } from './invocation.ts'

/** Routes whose rules read `input.request.body`, which is there only with `policyBody`. */
export const bodyHints = async ({ path, values, opa }: Invocation): Promise<string[]> => {
  const file = values['config']
  if (file === undefined) return []
  const { routes } = await loadGatewayConfig(file, process.env)
  const without = routes.filter(({ policyBody }) => !policyBody)
  if (without.length === 0) return []
  const plan = await planPolicies({ sources: await readSources(path), opa: await opa() })
  if (plan === undefined) return []
  const readers = readersOfBody(
    plan,
    without.map(({ entrypoint }) => entrypoint),
  )
  return without
    .filter(({ entrypoint }) => readers.includes(entrypoint))
    .map(({ id, entrypoint }) => `the route ${id} needs policyBody: its rule ${entrypoint} reads input.request.body`)
}
