import { noMessages } from '../../deliveries/messages/settings.ts'
import { createPostgresBus } from '../../events/postgres-bus.ts'
import { createDatabase } from '../../platform/database/database.ts'
import { createEnvelope } from '../../platform/envelope.ts'
import { createHealth } from '../../platform/health.ts'
import { createLogger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { type Relay, startRelay } from '../../relay/main.ts'
import { answerCalls } from '../harness/calls.ts'
import type { Connection } from '../harness/database-store.ts'

/** Our relay as `surrogate relay` runs it, on the ledger as its bus; webhooks and mail may go to this machine. */
export type RelaySettings = { connection: Connection; key: string }

const allowedNetworks = ['127.0.0.0/8']

let stop = async (): Promise<void> => {}

answerCalls({
  start: async ({ connection, key }: RelaySettings) => {
    const logger = createLogger({ name: 'relay', level: 'error' })
    const database = createDatabase({ connection, logger })
    const bus = createPostgresBus({ database, logger })
    const relay: Relay = await startRelay({
      config: { allowedNetworks, allowHttp: true, messages: { ...noMessages, allowedNetworks } },
      database,
      bus,
      envelope: createEnvelope({ current: Buffer.from(key, 'hex') }),
      logger,
      metrics: createMetrics({ processMetrics: true }),
      health: createHealth(),
    })
    stop = async () => {
      await relay.close()
      await bus.close()
      await database.close()
    }
  },
  /** The largest resident set since the start, in bytes. */
  peakMemory: () => process.resourceUsage().maxRSS * 1_024,
  stop: () => stop(),
})
