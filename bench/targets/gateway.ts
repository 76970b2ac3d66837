import { stringify } from 'yaml'
import { parseGatewayConfig, startGateway } from '../../gateway/main.ts'
import { createHealth } from '../../platform/health.ts'
import { createLogger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { loadPolicies } from '../../policies/decide.ts'
import { runServer } from '../harness/server.ts'
import type { GatewaySettings } from '../peers/obvious-gateway.ts'

export type GatewayTargetSettings = GatewaySettings & {
  /** `false`: the policy is evaluated for every request, also for an input that was answered before. */
  remember?: boolean
  /** Decides for a proxy of this kind, too. */
  dialect?: 'nginx' | 'traefik'
  /** The issuer's feed of revocations is followed by this client. */
  feedClient?: { id: string; secret: string }
}

/**
 * Our gateway as `surrogate gateway` runs it, from a configuration file with one issuer, one route and one upstream.
 */
runServer(async ({ upstream, issuer, audience, bundle, remember, dialect, feedClient }: GatewayTargetSettings) => {
  const file = {
    version: 1,
    listen: { port: 0 },
    ...(dialect && { trustedProxies: ['127.0.0.1'], forwardAuth: { dialect } }),
    issuers: [{ issuer, ...(feedClient && { client: feedClient, revocations: { mode: 'feed' } }) }],
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
