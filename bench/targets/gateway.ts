import { stringify } from 'yaml'
import { parseGatewayConfig, startGateway } from '../../gateway/main.ts'
import { createHealth } from '../../platform/health.ts'
import { createLogger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { loadPolicies } from '../../policies/decide.ts'
import { type GatewayFileSettings, gatewayFile } from '../harness/gateway-file.ts'
import { runServer } from '../harness/server.ts'

export type GatewayTargetSettings = GatewayFileSettings & {
  /** `false`: the policy is evaluated for every request, also for an input that was answered before. */
  remember?: boolean
}

/**
 * Our gateway as `surrogate gateway` runs it, from a configuration file with one issuer, one route and one upstream. Its
 * port is the one that Envoy asks on, when it is there for Envoy.
 */
runServer(async ({ remember, ...settings }: GatewayTargetSettings) => {
  const { bundle } = settings
  const logger = createLogger({ name: 'gateway', level: 'warn' })
  const policies = remember === false ? await loadPolicies({ path: bundle, logger, remember }) : undefined
  const gateway = await startGateway({
    config: parseGatewayConfig(stringify(gatewayFile(settings)), { file: 'gateway.yaml', env: {} }),
    ...(policies && { policies: { current: () => policies } }),
    logger,
    metrics: createMetrics({ processMetrics: true }),
    health: createHealth(),
  })
  await gateway.ready
  return { port: gateway.extAuthzPort ?? gateway.port, stop: gateway.close }
})
