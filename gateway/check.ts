import { createLifecycle } from '../platform/lifecycle.ts'
import { silentLogger } from '../platform/logger.ts'
import { createMetrics } from '../platform/metrics.ts'
import { isAddress } from '../policies/origin.ts'
import type { GatewayConfig } from './config.ts'
import { readIdentityKeys } from './identity-assertion.ts'
import { openPolicies, requireEntrypoints } from './policies.ts'
import { requireLogs } from './request-logs.ts'
import { createSharedParts } from './shared-parts.ts'

/**
 * What a start would find wrong with the files that a configuration names: policies that do not compile or lack an entrypoint, keys that
 * cannot be used. Throws `StartupError`. Asks nothing across the network: bundles behind an address are left out.
 */
export const checkFiles = async (config: GatewayConfig, opaBin: string | undefined): Promise<void> => {
  requireLogs(config)
  if (config.identity) await readIdentityKeys(config.identity.keyFile)
  if (isAddress(config.policies.path)) return
  const lifecycle = createLifecycle({ logger: silentLogger })
  const parts = { shared: createSharedParts(), lifecycle, logger: silentLogger, metrics: createMetrics(), opaBin }
  try {
    const policies = await openPolicies({ config, ...parts })
    requireEntrypoints(config, policies.current())
  } finally {
    await lifecycle.stop()
  }
}
