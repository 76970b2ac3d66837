import { constants } from 'node:os'
import { createHealth, type Health } from '../../platform/health.ts'
import { createInspection, type Inspection } from '../../platform/inspection.ts'
import { createLifecycle, type Lifecycle } from '../../platform/lifecycle.ts'
import { createLogger, type Logger } from '../../platform/logger.ts'
import { createMetrics, type Metrics } from '../../platform/metrics.ts'
import { compileHere } from './compile-here.ts'

/** What a long-running command stands on; its parts register their release with `lifecycle`. */
export interface Service {
  logger: Logger
  lifecycle: Lifecycle
  health: Health
  metrics: Metrics
  inspection?: Inspection
  /** Ends the service as a failure of its start would: for what it cannot go on without. */
  fail(error: unknown): void
}

/**
 * A terminal's Ctrl-C reaches us, and npm passes its own on: what comes this soon after the first signal is the same
 * one. In ms.
 */
const sameSignalMs = 1_000

/** After this long the process ends even if a part does not. In ms. */
const stopTimeoutMs = 90_000

/**
 * Runs a service from its start to SIGINT, SIGTERM or a failure, then drains it and releases everything in reverse
 * order. A second signal ends the process at once. Resolves to the exit code; rejects when `start` did, after what it
 * had opened was released.
 */
export const serve = async (
  { name, level }: { name: string; level: string },
  start: (service: Service) => Promise<void>,
): Promise<number> => {
  const logger = createLogger({ name, level })
  const lifecycle = createLifecycle({ logger })
  const ended = Promise.withResolvers<number>()
  ended.promise.catch(() => {})
  const service = {
    logger,
    lifecycle,
    health: createHealth(),
    metrics: createMetrics({ processMetrics: true }),
    inspection: createInspection(),
    fail: ended.reject,
  }
  const removeListeners = listenToTheEnd(logger, ended.resolve)

  // The admin listener opens first, when the parts that have checks of their own are not there yet.
  let started = false
  service.health.addCheck('start', () => ({ ok: started, detail: started ? undefined : 'starting' }))
  const starting = start(service).then(() => {
    started = true
  })
  try {
    await Promise.race([starting, ended.promise])
    return await ended.promise
  } finally {
    // A signal during the start: what is still being opened must be known before it can be released.
    await starting.catch(() => {})
    service.health.drain()
    compileHere()
    const overdue = setTimeout(() => process.exit(1), stopTimeoutMs)
    await lifecycle.stop()
    clearTimeout(overdue)
    removeListeners()
    logger.info('stopped')
  }
}

const listenToTheEnd = (logger: Logger, end: (code: number) => void) => {
  let firstSignalAt: number | undefined
  const onSignal = (signal: NodeJS.Signals) => {
    if (firstSignalAt === undefined) {
      firstSignalAt = performance.now()
      logger.info({ signal }, 'stopping; the same signal again ends the process at once')
      end(0)
    } else if (performance.now() - firstSignalAt > sameSignalMs) {
      process.exit(128 + constants.signals[signal])
    }
  }
  const onFailure = (error: unknown) => {
    logger.fatal({ err: error }, 'an error nobody handled; stopping')
    end(1)
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  process.on('uncaughtException', onFailure)
  process.on('unhandledRejection', onFailure)
  // Signals are heard to the very end: the second of one Ctrl-C may come when everything is released, and must not end
  // us by itself.
  return () => {
    process.off('uncaughtException', onFailure)
    process.off('unhandledRejection', onFailure)
  }
}
