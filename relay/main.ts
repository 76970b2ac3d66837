import { randomUUID } from 'node:crypto'
import type { EventBus } from '../events/bus.ts'
import { createEventFlow } from '../events/event-flow.ts'
import { hookSecrets } from '../events/hook-secrets.ts'
import { backlogOf, removeExpired } from '../events/ledger-store.ts'
import { startReconciler } from '../events/reconcile.ts'
import { pause } from '../events/wakeup.ts'
import { type Clock, systemClock } from '../platform/clock.ts'
import type { Database } from '../platform/database.ts'
import type { Envelope } from '../platform/envelope.ts'
import type { Health } from '../platform/health.ts'
import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import { createOutboundAgent, createTargetPolicy, type Resolve } from '../platform/outbound.ts'
import type { RelayConfig } from './config.ts'
import { createDeliver } from './deliver.ts'
import { createIngest } from './ingest.ts'
import { createLanes } from './lanes.ts'
import { createRecorder } from './recorder.ts'
import { createRelayMetrics } from './relay-metrics.ts'
import { defaultSchedule } from './retry-schedule.ts'

export interface Relay {
  /** Takes nothing more in, lets running attempts end (10 s at most), stores their results, gives its lanes back. */
  close(): Promise<void>
}

export interface RelayOptions {
  config: RelayConfig
  database: Database
  bus: EventBus
  envelope: Envelope
  logger: Logger
  metrics: Metrics
  health: Health
  now?: Clock
  /** In [0, 1), for jitter. Default Math.random. */
  random?: () => number
  /** Name resolution. Default: the system's. */
  resolve?: Resolve
}

const retentionEveryMs = 3_600_000

/**
 * Turns events into webhooks: bus → ingest → lanes → attempts → ledger. Any number of relays share the work; one that dies leaves its
 * lanes to the others when their leases end.
 */
export const startRelay = async (options: RelayOptions): Promise<Relay> => {
  const { config, database, bus, envelope, logger, metrics, health, now = systemClock, random, resolve } = options
  const { perHook = 4, maxLanes = 1_024, attemptTimeoutMs = 15_000, leaseMs = 30_000 } = config
  const { retrySchedule = defaultSchedule, keepMs = 14 * 86_400_000, reconcileAfterMs } = config
  const measure = createRelayMetrics(metrics, () => backlogOf(database.query))
  const { openHeaders, openSigningKey } = hookSecrets(envelope)

  const policy = createTargetPolicy({ allowedNetworks: config.allowedNetworks, allowHttp: config.allowHttp, resolve })
  const agent = createOutboundAgent({ policy, connections: perHook })
  const recorder = createRecorder({ database, logger, giveUpMs: leaseMs })
  const lanes = createLanes({
    database,
    recorder,
    logger,
    perHook,
    maxLanes,
    leaseMs,
    attemptTimeoutMs,
    relayId: randomUUID(),
    deliver: createDeliver({ agent, now, random, attemptTimeoutMs, schedule: retrySchedule }),
    open: ({ id, url, sealedHeaders, sealedKeys }) => ({
      id,
      url: new URL(url),
      headers: openHeaders(id, sealedHeaders),
      keys: sealedKeys.map((sealed) => openSigningKey(id, sealed)),
    }),
    onResult: measure.result,
  })

  const stopping = new AbortController()
  const ingest = createIngest({ database, logger, flow: createEventFlow(metrics), onDeliveries: lanes.wake })
  const consuming = bus.consume(ingest, { signal: stopping.signal })
  const reconciler = startReconciler({ database, bus, logger, metrics, patienceMs: reconcileAfterMs })
  const retention = keepTidy({ database, keepMs, logger, signal: stopping.signal })
  health.addCheck('relay', () => bus.health())

  return {
    async close() {
      stopping.abort()
      await Promise.all([consuming, reconciler.close(), retention, lanes.close()])
      await recorder.close()
      await agent.close()
    },
  }
}

const keepTidy = async (options: { database: Database; keepMs: number; logger: Logger; signal: AbortSignal }) => {
  const { database, keepMs, logger, signal } = options
  while (!signal.aborted) {
    await pause(retentionEveryMs, signal)
    if (signal.aborted) return
    try {
      await database.transaction((query) => removeExpired(query, keepMs))
    } catch (error) {
      logger.error({ err: error }, 'old events could not be removed; trying again in an hour')
    }
  }
}
