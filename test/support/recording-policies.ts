import type { PolicyProvider } from '../../gateway/main.ts'
import { silentLogger } from '../../platform/logger.ts'
import { loadPolicies, type PolicyInput, shippedPolicies } from '../../policies/decide.ts'

/** The shipped policies, with an ear at the door: `heard` gets every input and what was decided. */
export const recordingPolicies = async (
  heard: (input: PolicyInput, result: unknown) => void,
): Promise<PolicyProvider> => {
  const policies = await loadPolicies({ path: shippedPolicies, logger: silentLogger })
  const recording = {
    ...policies,
    evaluate: (entrypoint: string, input: unknown) => {
      const result = policies.evaluate(entrypoint, input)
      heard(input as PolicyInput, result)
      return result
    },
  }
  return { current: () => recording }
}
