import { stringify } from 'yaml'
import { parseGatewayConfig, startGateway } from '../../gateway/main.ts'
import { createHealth } from '../../platform/health.ts'
import { createLogger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { loadPolicies } from '../../policies/decide.ts'
import { runServer } from '../harness/server.ts'
import type { GatewaySettings } from '../peers/obvious-gateway.ts'

/**
 * Our gateway as `surrogate gateway` runs it, from a configuration file with one issuer, one route and one upstream. `remember: false`:
 * it evaluates the policy for every request, also for an input that was answered before.
 */
runServer(async ({ upstream, issuer, audience, bundle, remember }: GatewaySettings & { remember?: boolean }) => {
  const file = {
    version: 1,
    listen: { port: 0 },
    issuers: [{ issuer }],
    policies: { bundle },
    upstreams: { orders: { url: upstream } },
    routes: [
      {
        id: 'orders',
        path: '/orders/{id}',
        methods: ['GET', 'POST'],
        audience: [audience],
        scopes: ['read:orders'],
        upstream: 'orders',
      },
    ],
  }
  const logger = createLogger({ name: 'gateway', level: 'warn' })
  const policies = remember === false ? await loadPolicies({ path: bundle, logger, remember }) : undefined
  const gateway = await startGateway({
    config: parseGatewayConfig(stringify(file), { file: 'gateway.yaml', env: {} }),
    ...(policies && { policies: { current: () => policies } }),
    logger,
    metrics: createMetrics({ processMetrics: true }),
    health: createHealth(),
  })
  await gateway.ready
  return { port: gateway.port, stop: gateway.close }
})
