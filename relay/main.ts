import { hookSecrets } from '../deliveries/hook-secrets.ts'
import { lanesChannel } from '../deliveries/lane-notice-store.ts'
import type { EventBus } from '../events/bus.ts'
import { createEventMetrics } from '../events/event-metrics.ts'
import { createNotifier } from '../events/notifier.ts'
import { startReconciler } from '../events/reconcile.ts'
import { type Clock, systemClock, toSeconds } from '../platform/clock.ts'
import type { Database } from '../platform/database/database.ts'
import type { Envelope } from '../platform/envelope.ts'
import type { Health } from '../platform/health.ts'
import { createOutboundAgent, createTargetPolicy, type Resolve } from '../platform/http/outbound.ts'
import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import { pause } from '../platform/wake-up.ts'
import { attempt, maxResponseBytes } from './attempt.ts'
import { defaultPerHook, type RelayConfig } from './config.ts'
import { createDeliver } from './deliver.ts'
import { startHeartbeat } from './heartbeat.ts'
import { createIngest } from './ingest.ts'
import { createLaneRunner } from './lane-runner.ts'
import { createLanes } from './lanes.ts'
import { ledgerFigures } from './ledger/figures-store.ts'
import type { HookChange } from './ledger/hook-health-store.ts'
import { removeExpired } from './ledger/retention-store.ts'
import { startLogoutSending } from './logouts/logouts.ts'
import { startMessageSending } from './messages/messages.ts'
import { createOutcomeNotices } from './outcome-notices.ts'
import { createRecorder } from './recorder.ts'
import { createRelayMetrics, namedHooks } from './relay-metrics.ts'
import { defaultSchedule } from './retry-schedule.ts'
import { createSigningKey, signatureHeaders } from './signature.ts'
import { createTargets } from './targets.ts'

export interface Relay {
  /** Ingests nothing more, lets running attempts end (10 s at most), stores their results, gives its lanes back. */
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
/** What storing a result takes, at most. */
const storingMs = 1_000
/** What running attempts have to end when the relay stops. */
const graceMs = 10_000

/**
 * Turns events into webhooks: bus → ingest → lanes → attempts → ledger; sends messages to people; and tells
 * applications who has signed out. Any number of relays share the work; what one that dies had begun goes to the others
 * within seconds.
 */
export const startRelay = async (options: RelayOptions): Promise<Relay> => {
  const { config, database, bus, envelope, logger, metrics, health, now = systemClock, resolve } = options
  const { random = Math.random } = options
  const { perHook = defaultPerHook, maxLanes = 1_024, maxBytes = 32 * 1_048_576, catchUpRate = 3_000 } = config
  const { attemptTimeoutMs = 15_000, leaseMs = 30_000, aliveMs = 5_000, freshMs = 50 } = config
  const { retrySchedule = defaultSchedule, probeSchedule } = config
  const { keepMs = 14 * 86_400_000, reconcileAfterMs } = config
  const measure = createRelayMetrics(metrics, () => ledgerFigures(database.query, namedHooks))
  const onChange = ({ hookId, change, reason }: HookChange) => {
    measure.change(change)
    logger.warn({ hookId, reason }, notices[change])
    if (change === 'breaker closed') lanes.wake()
  }

  const policy = createTargetPolicy({ allowedNetworks: config.allowedNetworks, allowHttp: config.allowHttp, resolve })
  const agent = createOutboundAgent({ policy, connections: perHook, maxBodyBytes: maxResponseBytes })
  const targets = createTargets({ query: database.query, secrets: hookSecrets(envelope), logger, freshMs })
  const heartbeat = startHeartbeat({ database, logger, aliveMs, onFreeLanes: () => lanes.wake() })
  const stopping = new AbortController()
  const timing = { probeSchedule, random }
  const outcomes = createOutcomeNotices({ query: database.query, logger })
  const recorder = createRecorder({
    ...{ database, logger, giveUpMs: leaseMs, timing, onChange, onStored: outcomes.add },
    stopping: stopping.signal,
  })
  const runner = createLaneRunner({
    query: database.query,
    targets,
    deliver: createDeliver({ agent, now, random, attemptTimeoutMs, schedule: retrySchedule }),
    recorder,
    onResult: measure.result,
    onRoom: () => lanes.wake(),
    logger,
    perHook,
    maxLanes,
    maxBytes,
    stopping: stopping.signal,
  })
  const lanes = createLanes({
    database,
    heartbeat,
    runner,
    logger,
    perHook,
    catchUpRate,
    leaseMs,
    attemptMs: attemptTimeoutMs + storingMs,
    stopping: stopping.signal,
  })

  const opened = createNotifier({ database, logger, channel: lanesChannel })
  opened.onNotify(lanes.wake)
  const messages = startMessageSending({
    config: config.messages,
    timeoutMs: config.messageTimeoutMs,
    leaseMs: config.messageLeaseMs,
    schedule: config.messageRetrySchedule,
    database,
    envelope,
    logger,
    metrics,
    random,
    resolve,
    sign: ({ id, body, signingKey }) =>
      signatureHeaders({
        ...{ id, timestamp: toSeconds(now()), body: Buffer.from(body) },
        keys: [createSigningKey(signingKey)],
      }),
  })
  opened.onNotify(messages.wake)
  const logouts = startLogoutSending({
    ...{ query: database.query, envelope, logger, metrics, random },
    post: (request) => attempt({ agent, ...request }),
    timeoutMs: config.logoutTimeoutMs,
    leaseMs: config.logoutLeaseMs,
    schedule: config.logoutRetrySchedule,
  })
  opened.onNotify(logouts.wake)
  const ingest = createIngest({ database, logger, metrics: createEventMetrics(metrics), onDeliveries: lanes.wake })
  const consuming = bus.consume(ingest, { signal: stopping.signal })
  const reconciler = startReconciler({ database, bus, logger, metrics, patienceMs: reconcileAfterMs })
  const retention = removeOldEvents({ database, keepMs, logger, signal: stopping.signal })
  health.addCheck('relay', () => bus.health())
  health.addCheck('relay session', () => heartbeat.health())
  health.addCheck('webhook secrets', () => targets.health())

  return {
    async close() {
      stopping.abort()
      const messagesEnded = Promise.all([messages.close(graceMs), logouts.close(graceMs)])
      await opened.close()
      await Promise.all([consuming, reconciler.close(), retention, lanes.ended])
      await runner.close(graceMs)
      await messagesEnded
      await recorder.close()
      outcomes.close()
      await heartbeat.close()
      await agent.close()
    },
  }
}

const notices: Record<HookChange['change'], string> = {
  'breaker opened': 'a receiver fails: only probes are sent to it',
  'breaker closed': 'a receiver works again',
  disabled: 'a hook was disabled; what it misses is held',
}

const removeOldEvents = async (options: {
  database: Database
  keepMs: number
  logger: Logger
  signal: AbortSignal
}) => {
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
