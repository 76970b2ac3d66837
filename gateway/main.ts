import type { Health } from '../platform/health.ts'
import type { Inspection } from '../platform/inspection.ts'
import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import type { GatewayConfig, GatewaySource } from './config/load.ts'
import { drain } from './drain.ts'
import type { ExtAuthzParts } from './ext-authz/listener.ts'
import { createGateway, type GatewayOptions } from './gateway.ts'
import { createHotSwap } from './hot-swap.ts'
import { createRecorder } from './inspection/recorder.ts'
import { openListener } from './listener.ts'
import { openInspection } from './open-inspection.ts'
import { createMetricsExports } from './open-telemetry.ts'
import { ownProviders } from './providers.ts'
import { createReloads } from './reload.ts'
import { createSharedParts } from './shared-parts.ts'

export {
  type FileSource,
  fileSource,
  type GatewayConfig,
  type GatewaySource,
  loadGatewayConfig,
  parseGatewayConfig,
} from './config/load.ts'
export { createGateway, type Gateway, type GatewayOptions } from './gateway.ts'
export type { PolicyProvider } from './open-policies.ts'

/** A gateway with its public listener. */
export interface RunningGateway {
  url: string
  port: number
  /** Where Envoy asks; with `extAuthz`. */
  extAuthzPort: number | undefined
  /** Of the inspection listener, where there is one. */
  inspectionUrl: string | undefined
  ready: Promise<void>
  /** Reads the configuration again; see `Reloads`. Does nothing without a `source`. */
  reload(): Promise<void>
  /** Opens log files anew, after they were moved away. */
  reopenLogs(): void
  close(): Promise<void>
}

/**
 * Starts the gateway's public listener. The admin listener is the caller's. Answers 503 `keys_unavailable` until an
 * issuer's keys are there, and is not ready in `health` until then. `close` lets `drain.delay` pass, stops accepting,
 * ends WebSockets with 1001, gives running requests `drain.timeout`, and then releases everything.
 */
export const startGateway = async (
  options: GatewayOptions & {
    metrics: Metrics
    health: Health
    /** Gets a member `gateway`. */
    inspection?: Inspection | undefined
    /** What moves the listener, named when its port is taken. Default `listen.port`. */
    portSetting?: string | undefined
    /** Where the configuration came from, to follow it. */
    source?: GatewaySource | undefined
  },
): Promise<RunningGateway> => {
  const { config, health, metrics, logger, source, opaBin, now, portSetting = 'listen.port' } = options
  const { providers = ownProviders } = options
  const shared = createSharedParts()
  const recorder = config.inspection && createRecorder(config.inspection)
  const build = (nextConfig: GatewayConfig) => createGateway({ ...options, config: nextConfig, shared, recorder })
  const gateways = await createHotSwap({ config, build, health })
  const gateway = () => gateways.current
  const exports = createMetricsExports({ shared, logger, metrics })
  const listener = await openListener({ config, gateway, portSetting, logger, metrics }).catch(
    async (error: unknown) => {
      await gateways.close()
      throw error
    },
  )

  // gRPC is loaded when somebody asks by it only.
  const extAuthz = await openExtAuthz({ config, gateway, logger, metrics }).catch(async (error: unknown) => {
    await listener.close(0)
    await gateways.close()
    throw error
  })
  const inspection =
    recorder &&
    (await openInspection({
      ...{ config, shared, logger, metrics, now, providers, opaBin },
      inspected: {
        decisions: recorder.decisions,
        upstreams: async () => gateways.current.inspect(),
        issuers: async () => gateways.current.trusted(),
        session: async (sid) => gateways.current.session(sid),
        policies: () => gateways.current.policies(),
        differences: async () => recorder.differences(),
      },
    }).catch(async (error: unknown) => {
      await extAuthz?.close(0)
      await listener.close(0)
      await gateways.close()
      throw error
    }))

  const reloads =
    source &&
    createReloads({
      file: source.file,
      running: config,
      load: source.load,
      async apply(nextConfig, signal) {
        const before = gateways.config
        if (!(await gateways.replace(nextConfig, signal))) return false
        warnOfRestart(before, nextConfig, logger)
        listener.adjust(nextConfig)
        await exports.follow(nextConfig)
        await inspection?.adopt(nextConfig)
        return true
      },
      logger,
      metrics,
    })
  await exports.follow(config)
  options.inspection?.add('gateway', () => gateways.current.inspect())
  if (listener.certificates) health.addCheck('gateway certificates', listener.certificates)
  if (extAuthz?.certificates) health.addCheck('ext_authz certificates', extAuthz.certificates)
  if (inspection?.certificates) health.addCheck('gateway inspection certificates', inspection.certificates)
  if (reloads) health.addCheck('gateway configuration', reloads.status)
  const { url, port } = listener.running
  logger.info({ url, revision: config.revision }, 'the gateway listens')

  return {
    url,
    port,
    extAuthzPort: extAuthz?.port,
    inspectionUrl: inspection?.url,
    ready: gateways.current.ready,
    reload: async () => reloads?.reload(),
    reopenLogs: gateways.reopenLogs,
    async close() {
      const listeners = [listener, ...(extAuthz ? [extAuthz] : [])]
      const reloadsEnded = reloads?.close()
      await Promise.all([inspection?.close(), drain({ listeners, gateways, reloadsEnded })])
      await exports.close()
    },
  }
}

const openExtAuthz = async (parts: Omit<ExtAuthzParts, 'settings'>) => {
  const { extAuthz: settings } = parts.config
  if (!settings) return undefined
  const { openExtAuthz: open } = await import('./ext-authz/listener.ts')
  return open({ ...parts, settings })
}

/** Settings of open listeners: a change counts from the next start. */
const restartMembers = {
  listen: ({ listen }: GatewayConfig) => listen,
  workers: ({ workers }: GatewayConfig) => workers,
  admin: ({ admin }: GatewayConfig) => admin,
  extAuthz: ({ extAuthz }: GatewayConfig) => extAuthz,
  inspection: ({ inspection }: GatewayConfig) => {
    const { host, port, tls, keep } = inspection ?? {}
    return { host, port, tls, keep }
  },
  'limits.headerSize': ({ limits }: GatewayConfig) => limits.headerSize,
} as const

export const warnOfRestart = (before: GatewayConfig, next: GatewayConfig, logger: Logger): void => {
  const members = Object.entries(restartMembers)
    .filter(([, read]) => JSON.stringify(read(before)) !== JSON.stringify(read(next)))
    .map(([name]) => name)
  if (members.length > 0) logger.warn({ members }, 'these members of the configuration count from the next start')
}
