import { randomBytes } from 'node:crypto'
import { noMessages } from '../../deliveries/messages/settings.ts'
import { createBus } from '../../events/create-bus.ts'
import { createPublisher } from '../../events/publisher.ts'
import type { Gateway } from '../../issuer/console/gateways/gateways.ts'
import { startIssuer } from '../../issuer/main.ts'
import { createDatabase } from '../../platform/database/database.ts'
import { createHealth } from '../../platform/health.ts'
import { createLogger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { Secret } from '../../platform/secret.ts'
import { askingPolicies } from '../../test/support/asked-first.ts'
import type { Connection } from '../harness/database-store.ts'
import { passwordMicros } from '../harness/password-cost.ts'
import { runServer } from '../harness/server.ts'

/**
 * Our issuer as `surrogate issuer` runs it, with its publisher and, unless asked for, without an impersonation policy,
 * which is the default.
 */
type IssuerSettings = {
  connection: Connection
  /** An application that holds all of the Management API. */
  bootstrap?: { id: string; secret: string }
  /** `host:port` of a NATS server, which need not be there. */
  nats?: string
  /** Whose word about the addresses of browsers is taken. */
  trustedProxies?: string[]
  /** Of connectors and messages, in hex; a relay has the same. Default: random. */
  key?: string
  /** Open interactions of one address. Default 300, as shipped; 0: any number. */
  interactionsPerAddress?: number
  /** Identity providers may be there. */
  allowedNetworks?: string[]
  /** Customers with `askFirst` in their custom data are asked before anybody acts as them. */
  asksFirst?: boolean
  /** Where the built console is. Absent: its pages are not served. */
  consoleFolder?: string
  /** That the console asks. */
  consoleGateways?: Gateway[]
}

const start = async ({
  connection,
  bootstrap,
  nats,
  trustedProxies = [],
  key,
  interactionsPerAddress = 300,
  allowedNetworks = [],
  asksFirst = false,
  consoleFolder,
  consoleGateways = [],
}: IssuerSettings) => {
  const logger = createLogger({ name: 'issuer', level: 'warn' })
  const database = createDatabase({ connection, logger })
  const servers = nats !== undefined && { addresses: [nats], tls: false, credentials: {} }
  const bus = await createBus({ database, logger, ...(servers && { nats: { servers } }) })
  const events = createPublisher({ database, bus, logger })
  const rules = asksFirst ? await askingPolicies() : undefined
  const issuer = await startIssuer({
    ...(rules && { policies: { current: () => rules.set } }),
    console: { folder: consoleFolder, gateways: () => consoleGateways },
    config: {
      host: '127.0.0.1',
      port: 0,
      baseUrl: undefined,
      trustedProxies,
      keyEncryptionKey: key === undefined ? randomBytes(32) : Buffer.from(key, 'hex'),
      previousKeyEncryptionKey: undefined,
      signingAlgorithm: 'ES256',
      subjectTokenTtl: 600,
      refreshTokenLeeway: 10,
      interactionsPerAddress,
      managementApiIndicators: [],
      messages: { ...noMessages, allowedNetworks },
      bootstrapClientId: bootstrap?.id,
      bootstrapClientSecret: bootstrap && new Secret(bootstrap.secret),
    },
    database,
    events,
    logger,
    metrics: createMetrics({ processMetrics: true }),
    health: createHealth(),
  })
  const stop = async () => {
    await issuer.close()
    await events.close()
    await bus.close()
    await database.close()
    await rules?.remove()
  }
  return { port: issuer.port, stop }
}

runServer(start, { passwordMicros })
