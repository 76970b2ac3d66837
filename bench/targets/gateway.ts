import { stringify } from 'yaml'
import { parseGatewayConfig, startGateway } from '../../gateway/main.ts'
import { createHealth } from '../../platform/health.ts'
import { createLogger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { runServer } from '../harness/server.ts'
import type { GatewaySettings } from '../peers/obvious-gateway.ts'

/** Our gateway as `surrogate gateway` runs it, from a configuration file with one issuer, one route and one upstream. */
runServer(async ({ upstream, issuer, audience, bundle }: GatewaySettings) => {
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
  const gateway = await startGateway({
    config: parseGatewayConfig(stringify(file), { file: 'gateway.yaml', env: {} }),
    logger: createLogger({ name: 'gateway', level: 'warn' }),
    metrics: createMetrics({ processMetrics: true }),
    health: createHealth(),
  })
  await gateway.ready
  return { port: gateway.port, stop: gateway.close }
})
