import { createBus } from '../../events/create-bus.ts'
import { createDatabase } from '../../platform/database/database.ts'
import { createEnvelope } from '../../platform/envelope.ts'
import { createHealth } from '../../platform/health.ts'
import { createLogger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { startRelay } from '../../relay/main.ts'
import { replacements, type Variant } from './variants.ts'

/**
 * A relay of the harness: the product's parts with times that fit into a run of minutes, and one part replaced in a
 * variant. `node relay-process.ts '{"connection": …, "key": "<base64>", "nats": …, "variant": …}'`. Logs JSON lines.
 */
const { connection, key, nats, variant } = JSON.parse(process.argv[2]!) as {
  connection: Parameters<typeof createDatabase>[0]['connection']
  key: string
  nats: string
  variant: Variant
}

const logger = createLogger({ name: 'relay', level: 'warn' })
const database = createDatabase({ connection, logger, transactionIdleMs: 4_000 })
const servers = { addresses: [nats], tls: false, credentials: {} }
const bus = await createBus({ database, logger, nats: { servers } })
await startRelay({
  config: {
    allowedNetworks: ['127.0.0.0/8'],
    allowHttp: true,
    attemptTimeoutMs: 2_000,
    leaseMs: 8_000,
    retrySchedule: [100, 200, 500, 1_000, 2_000, 2_000, 2_000, 2_000, 2_000],
    probeSchedule: [300],
    reconcileAfterMs: 4_000,
  },
  database,
  bus: replacements[variant].bus?.(bus, database) ?? bus,
  envelope: createEnvelope({ current: Buffer.from(key, 'base64') }),
  logger,
  metrics: createMetrics(),
  health: createHealth(),
})
process.stdout.write('started\n')
