import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { stringify } from 'yaml'
import { parseGatewayConfig, startGateway } from '../../gateway/main.ts'
import { createHealth } from '../../platform/health.ts'
import { createLogger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { answerCalls } from '../harness/calls.ts'

export type PoliciesTargetSettings = {
  /** A folder of rules with the entrypoints `bench/decision`, `bench/fresh`, `bench/slow` and `bench/current`. */
  path: string
  shadow?: string
  /** With routes whose rules run in threads. */
  isolated?: boolean
}

let close = async (): Promise<unknown> => undefined

/**
 * Our gateway with public routes: one decided on its own thread, one that tells which rules run, and isolated ones, of
 * which one runs away.
 */
const start = async ({ path, shadow, isolated }: PoliciesTargetSettings): Promise<number> => {
  const upstream = createServer((_request, response) => response.end('done'))
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
  const common = { auth: 'none', upstream: 'api', entrypoint: 'bench/decision' }
  const file = {
    version: 1,
    listen: { port: 0 },
    policies: { path, ...(shadow !== undefined && { shadow }) },
    upstreams: { api: { url: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}` } },
    routes: [
      { ...common, id: 'main', path: '/main' },
      { ...common, id: 'current', path: '/current/{mark}', entrypoint: 'bench/current' },
      ...(isolated
        ? [
            { ...common, id: 'isolated', path: '/isolated', isolation: 'worker' },
            { ...common, id: 'fresh', path: '/fresh', isolation: 'worker', entrypoint: 'bench/fresh' },
            { ...common, id: 'slow', path: '/slow', isolation: 'worker', entrypoint: 'bench/slow' },
          ]
        : []),
    ],
  }
  const gateway = await startGateway({
    config: parseGatewayConfig(stringify(file), { file: 'gateway.yaml', env: {} }),
    logger: createLogger({ name: 'gateway', level: 'silent' }),
    metrics: createMetrics(),
    health: createHealth(),
  })
  await gateway.ready
  close = async () => {
    await gateway.close()
    upstream.close()
  }
  return gateway.port
}

answerCalls({ start, stop: () => close() })
