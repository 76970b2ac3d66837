import { setTimeout as delay } from 'node:timers/promises'
import type { Health } from '../../platform/health.ts'
import type { Inspection } from '../../platform/inspection.ts'
import { createLifecycle, type Lifecycle } from '../../platform/lifecycle.ts'
import { openLines } from '../../platform/line-writer.ts'
import type { Logger } from '../../platform/logger.ts'
import { createMetrics, type Metrics } from '../../platform/metrics.ts'
import { newNonceKey } from '../caller/dpop/proof-records.ts'
import { type FileSource, type GatewayConfig, parseGatewayConfig } from '../config/load.ts'
import { workersOf } from '../config/worker-count.ts'
import { namedVariables } from '../config/yaml-file.ts'
import { newTicketKeys } from '../listener/tls.ts'
import { type RunningGateway, warnOfRestart } from '../main.ts'
import { openInspection } from '../open-inspection.ts'
import { type PolicyProvider, policyHealth } from '../open-policies.ts'
import { createMetricsExports } from '../open-telemetry.ts'
import { ownProviders } from '../providers.ts'
import { createReloads } from '../reload.ts'
import { createSharedParts } from '../shared-parts.ts'
import { createAnswers } from './answers.ts'
import { askAll, reportTimeoutMs } from './ask-all.ts'
import { createChanges } from './changes.ts'
import { forkWorker, type WorkerProcess } from './fork-worker.ts'
import { createHandOut } from './hand-out.ts'
import { createHandOver } from './hand-over.ts'
import { inspectedWorkers } from './inspected-workers.ts'
import { createMergedDecisions } from './merged-decisions.ts'
import { createWorkerMetrics } from './merged-metrics.ts'
import { mergeReadiness } from './merged-readiness.ts'
import type { Configuration } from './messages.ts'
import { createWorkerPool } from './worker-pool.ts'

/** What runs: the configuration, as text and read, and the rules that it names. */
interface Running {
  config: GatewayConfig
  configuration: Configuration
  policies: PolicyProvider
  /** Releases what the primary process opened for it. */
  lifecycle: Lifecycle
}

/** Lines of all workers that wait to be written, in bytes. */
const bufferSize = 67_108_864
/** Beyond `drain`, until a worker is ended. In ms. */
const drainGraceMs = 5_000

/**
 * The gateway in several processes. This one reads the configuration and compiles the rules, follows revocations, asks
 * for keys and counts for limits, once for all; the workers (`worker.ts`) share the public port and serve. Whatever is
 * new takes over in all of them together (`changes.ts`); a worker that ends has its place taken (`worker-pool.ts`); and
 * when this process ends they end. The same as `startGateway` otherwise.
 */
export const startWorkers = async (options: {
  source: FileSource
  /** In the lines of the workers' log. */
  name: string
  logger: Logger
  metrics: Metrics
  health: Health
  /** Gets a member `gateway`. */
  inspection?: Inspection | undefined
  opaBin?: string | undefined
  portSetting?: string | undefined
}): Promise<RunningGateway> => {
  const { source, name, logger, metrics, health, opaBin, portSetting = 'listen.port' } = options
  const shared = createSharedParts()
  const answers = createAnswers({ metrics })
  const exports = createMetricsExports({ shared, logger, metrics })
  const counted = createWorkerMetrics()
  const ticketKeys = newTicketKeys()
  const nonceKey = newNonceKey()
  const stdout = openLines({ to: 'stdout', bufferSize })
  const texts = new WeakMap<GatewayConfig, string>()

  const load = async (): Promise<GatewayConfig> => {
    const text = await source.read()
    const config = parseGatewayConfig(text, source)
    texts.set(config, text)
    return config
  }

  const handOver = createHandOver({
    shared,
    logger,
    metrics,
    opaBin,
    change: (bundle, onCommit) => changes.make({ policies: () => [bundle] }, onCommit),
  })

  /** Opens what this process has of a configuration: its rules. */
  const open = async (config: GatewayConfig): Promise<Running> => {
    const lifecycle = createLifecycle({ logger })
    try {
      const policies = await handOver.open(config, lifecycle)
      const text = texts.get(config) ?? ''
      const environment = namedVariables(text, source.env)
      return { config, configuration: { file: source.file, text, environment }, policies, lifecycle }
    } catch (error) {
      await lifecycle.stop()
      throw error
    }
  }

  let running = await open(await load())
  const size = workersOf(running.config)
  const { configuration: first } = running
  const keepAnswers = async (config: GatewayConfig) => {
    answers.limits.keep(config)
    await answers.introspections.keep(config)
  }
  await keepAnswers(running.config)

  const handOut = createHandOut({ metrics })
  const { listen, extAuthz } = running.config
  const extAuthzHandOut = extAuthz && createHandOut({ metrics, listener: 'extAuthz' })
  const handOuts = [handOut, ...(extAuthzHandOut ? [extAuthzHandOut] : [])]
  const changes = createChanges({
    inForce: () => ({ configuration: running.configuration, policies: () => handOver.bundlesOf(running.config) }),
    async open(worker) {
      await worker.call('serve', undefined)
      decisions.join(worker)
      for (const each of handOuts) each.join(worker)
    },
  })
  const decisions = createMergedDecisions(changes.members)
  const ready = new Set<number>()
  const allReady = Promise.withResolvers<void>()
  const pool = createWorkerPool({
    size,
    logger,
    fork: (number) =>
      forkWorker({
        number,
        stdout,
        handlersOf: (worker) => ({
          ...answers.to(worker, () => {
            if (ready.add(number).size === size) allReady.resolve()
          }),
          decisions: (told) => decisions.receive(told),
        }),
      }),
    async introduce(worker) {
      const log = { name, level: logger.level }
      const same = { of: size, log, ticketKeys, nonceKey, portSetting, first }
      await worker.call('start', { worker: worker.number, ...same })
      await changes.join(worker)
    },
    onEnd(worker) {
      changes.leave(worker)
      for (const each of handOuts) each.leave(worker)
      answers.forget(worker)
      counted.end(worker.number)
    },
  })

  const stop = async () => {
    pool.stop()
    await Promise.all(handOuts.map((each) => each.close()))
    for (const worker of pool.running()) worker.kill()
    await Promise.all(pool.running().map(({ closed }) => closed))
    await running.lifecycle.stop()
    await answers.close()
  }
  const openForAll = async () => {
    await pool.started
    const opened = await handOut.open({ ...listen, setting: portSetting, tls: listen.tls })
    if (!extAuthz || !extAuthzHandOut) return { ...opened, extAuthzPort: undefined }
    const asked = await extAuthzHandOut.open({ ...extAuthz, setting: 'extAuthz.port', tls: extAuthz.tls })
    logger.info({ url: asked.url }, 'ext_authz listens')
    return { ...opened, extAuthzPort: asked.port }
  }
  const inspected = inspectedWorkers({
    members: changes.members,
    decisions,
    revision: () => running.config.revision,
    policies: () => running.policies.current(),
  })
  const { url, port, extAuthzPort } = await openForAll().catch(async (error: unknown) => {
    await stop()
    throw error
  })
  // To be merged with what workers count, as of a worker 0: its certificates have the names of theirs.
  const inspectionMetrics = createMetrics()
  const inspection = await openInspection({
    config: running.config,
    ...{ shared, opaBin, logger, metrics: inspectionMetrics },
    providers: { ...ownProviders, ...answers.providers },
    inspected,
  }).catch(async (error: unknown) => {
    await stop()
    throw error
  })
  logger.info({ url, revision: running.config.revision, workers: size }, 'the gateway listens')

  const reloads = createReloads({
    file: source.file,
    running: running.config,
    load,
    async apply(config, signal) {
      const before = running
      const next = await open(config)
      const policies = () => handOver.bundlesOf(config)
      const takeOver = () => {
        running = next
      }
      try {
        await changes.make({ configuration: next.configuration, policies }, takeOver, signal)
      } catch (error) {
        await next.lifecycle.stop()
        if (signal.aborted) return false
        throw error
      }
      await keepAnswers(config)
      await before.lifecycle.stop()
      await exports.follow(config)
      await inspection?.adopt(config)
      warnOfRestart(before.config, config, logger)
      return true
    },
    logger,
    metrics,
  })
  if (inspection?.certificates) health.addCheck('gateway inspection certificates', inspection.certificates)
  health.addCheck('gateway configuration', reloads.status)
  health.addCheck('gateway policies', () => {
    const { policies } = running
    return policyHealth(policies.status?.() ?? policies.current())
  })
  health.addChecks(async () =>
    mergeReadiness(
      await askAll(changes.members(), (worker) => worker.call('health', undefined, reportTimeoutMs)),
      size,
    ),
  )
  options.inspection?.add('gateway', inspected.upstreams)
  metrics.include(async () => {
    const report = async (worker: WorkerProcess) => {
      const snapshot = await worker.call('metrics', undefined, reportTimeoutMs).catch(() => undefined)
      if (snapshot && worker.alive) counted.add(worker.number, snapshot)
    }
    await Promise.all(changes.members().map(report))
    counted.add(0, await inspectionMetrics.snapshot())
    return counted.all()
  })
  await exports.follow(running.config)

  return {
    url,
    port,
    extAuthzPort,
    inspectionUrl: inspection?.url,
    ready: allReady.promise,
    reload: reloads.reload,
    reopenLogs() {
      for (const worker of changes.members()) worker.tell('reopenLogs', undefined)
    },
    async close() {
      pool.stop()
      const inspectionEnded = inspection?.close()
      const reloadsEnded = reloads.close()
      const { delay: pause, timeout } = running.config.drain
      for (const worker of changes.members()) worker.tell('endKeepAlive', undefined)
      if (pause > 0) await delay(pause)
      await Promise.all(handOuts.map((each) => each.close()))
      await Promise.all(
        changes.members().map((worker) =>
          // It ends by itself when it has drained.
          worker
            .call('drain', undefined, timeout + drainGraceMs)
            .then((snapshot) => {
              counted.add(worker.number, snapshot)
              return worker.closed
            })
            .catch(() => {}),
        ),
      )
      await Promise.all([reloadsEnded, inspectionEnded])
      await stop()
      await exports.close()
    },
  }
}
