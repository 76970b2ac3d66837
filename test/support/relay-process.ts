import { createPostgresBus } from '../../events/postgres-bus.ts'
import { createDatabase } from '../../platform/database/database.ts'
import { createEnvelope } from '../../platform/envelope.ts'
import { createHealth } from '../../platform/health.ts'
import { createLogger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { startRelay } from '../../relay/main.ts'

/**
 * A relay as a process of its own, to be killed by tests: `node relay-process.ts '{"connection": …, "key": "<hex>",
 * "config": …}'`. Logs JSON lines.
 */
const { connection, key, config } = JSON.parse(process.argv[2]!)
const logger = createLogger({ name: 'relay', level: 'info' })
const database = createDatabase({ connection, logger })
await startRelay({
  config,
  database,
  bus: createPostgresBus({ database, logger }),
  envelope: createEnvelope({ current: Buffer.from(key, 'hex') }),
  logger,
  metrics: createMetrics(),
  health: createHealth(),
})
logger.info('started')
