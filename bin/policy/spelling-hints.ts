import { loadGatewayConfig } from '../../gateway/config/load.ts'
import { pathComparisons } from '../../policies/authoring/path-comparisons.ts'
import { type CompileIssue, planPolicies, readSources } from '../../policies/engine/index.ts'
import type { Invocation } from './invocation.ts'

/**
 * Rules that compare a literal with the path as it was sent. With a `gateway.yaml` only those that decide about routes
 * to an upstream that takes several spellings for the same; without one all, since `protect()` stands before such an
 * application.
 */
export const spellingHints = async ({ path, values, opa }: Invocation): Promise<CompileIssue[]> => {
  const file = values['config']
  const config = file === undefined ? undefined : await loadGatewayConfig(file, process.env)
  const concerned = config?.routes.filter(
    ({ pathEquality, matrixParameters }) =>
      pathEquality.case === 'insensitive' || pathEquality.trailingSlash === 'ignore' || matrixParameters === 'keep',
  )
  const plan = await planPolicies({ sources: await readSources(path), opa: await opa() })
  if (plan === undefined) return []
  return pathComparisons(plan, concerned && [...new Set(concerned.map(({ entrypoint }) => entrypoint))])
}
