import type { Database } from '../platform/database/database.ts'
import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import type { NatsServers } from '../platform/nats/nats-url.ts'
import type { EventBus } from './bus.ts'
import { createPostgresBus } from './postgres-bus.ts'

export interface CreateBusOptions {
  database: Database
  logger: Logger
  metrics?: Metrics
  /** Absent: events travel through the database. `patienceMs`: as `connectNats` takes it. */
  nats?: { servers: NatsServers; credsFile?: string | undefined; patienceMs?: number } | undefined
}

/**
 * The bus of this configuration. Going from one to the other needs nothing but a restart of every process: what one has
 * left is found by the other, because the outbox says what is not ingested yet. Throws `StartupError` when NATS holds
 * something that is not ours.
 */
export const createBus = async ({ database, logger, metrics, nats }: CreateBusOptions): Promise<EventBus> => {
  const bus = nats ? await createNatsBus(nats, logger) : createPostgresBus({ database, logger })
  const connected = metrics?.gauge(
    'surrogate_bus_connected',
    'Whether what carries events is connected: NATS, or the connection that wakes relays up. 1 or 0.',
  )
  metrics?.onCollect(async () => connected?.set((await bus.health()).connected ? 1 : 0))
  return bus
}

/** Loaded only where it is used. */
const createNatsBus = async (nats: NonNullable<CreateBusOptions['nats']>, logger: Logger): Promise<EventBus> => {
  const [{ connectNats }, { createJetStreamBus }] = await Promise.all([
    import('../platform/nats/nats.ts'),
    import('./jetstream-bus.ts'),
  ])
  const link = await connectNats({ ...nats, name: 'surrogate', logger })
  try {
    return await createJetStreamBus({ nats: link, logger })
  } catch (error) {
    await link.close()
    throw error
  }
}
