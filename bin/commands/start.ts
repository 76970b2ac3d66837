import { resolve } from 'node:path'
import type { z } from 'zod'
import { fileSource, type GatewayConfig } from '../../gateway/config/load.ts'
import { loadIssuerConfig } from '../../issuer/config.ts'
import type { Gateway } from '../../issuer/console/gateways/gateways.ts'
import { loadAll, loadConfig } from '../../platform/config.ts'
import type { DatabaseConnection } from '../../platform/database/database.ts'
import { startEmbeddedPostgres } from '../../platform/embedded-postgres/index.ts'
import { loadRelayConfig } from '../../relay/config.ts'
import { ownKeyEncryptionKey, ownPreviousKey } from '../cli/key-file.ts'
import { parseOptions } from '../cli/options.ts'
import { type Service, serve } from '../cli/serve.ts'
import { settings } from '../cli/settings.ts'
import { followOutbox } from '../messages/outbox-file.ts'
import { openAdmin } from '../parts/admin.ts'
import { openBus, openDatabase } from '../parts/database.ts'
import { openGateway } from '../parts/gateway.ts'
import { openIssuer, sayFirstOwner } from '../parts/issuer.ts'
import { openRelay } from '../parts/relay.ts'
import { sayOnce } from './issuer.ts'
import { outboxIn } from './messages.ts'

type Environment = Record<string, string | undefined>
type StartSettings = z.output<typeof settings.start>

/**
 * `surrogate start [--demo]`: issuer, relay and gateway in one process, the same code as in three. Without DATABASE_URL
 * with an embedded PostgreSQL; with `--demo` also the demo API, its data, and a gateway in front of it.
 */
export const startCommand = async (args: readonly string[]): Promise<number> => {
  const { values } = parseOptions(args, { demo: { type: 'boolean', default: false } })
  const demo = values.demo ? await import('../demo/demo.ts') : undefined
  demo?.refuseOutsideDevelopment(process.env)
  checkSettings()
  const own = loadConfig(settings.start, process.env)
  return serve({ name: 'surrogate', level: own.LOG_LEVEL ?? (demo ? 'warn' : 'info') }, async (service) => {
    const admin = await openAdmin(service, { host: own.HOST, port: own.ADMIN_PORT })
    const place = await openPlace(service, own)
    const prepared = await demo?.prepareDemo(own, place.folder)
    const environment: Environment = { ...process.env, ...place.environment, ...prepared?.environment }

    const database = await openDatabase(service, place.connection)
    const bus = await openBus(service, { database, nats: own })
    const config = loadIssuerConfig(environment)
    const policy = {
      path: own.POLICY_PATH ?? prepared?.rules,
      shadowPath: own.POLICY_SHADOW_PATH,
      units: own.POLICY_UNITS,
      opaBin: own.OPA_BIN,
    }
    const beside: Gateway[] = []
    const issuer = await openIssuer(service, { config, database, bus, policy, gateways: () => beside })
    if (issuer.bootstrap) sayOnce(issuer.bootstrap)

    const open = await prepared?.open(service, issuer.baseUrl)
    const keys = { current: config.keyEncryptionKey, previous: config.previousKeyEncryptionKey }
    await openRelay(service, { config: loadRelayConfig(environment), database, bus, keys })

    // Messages are for whoever tries it out at this terminal.
    const outbox = demo && environment['MESSAGE_OUTBOX']
    if (outbox) {
      const following = await followOutbox(outbox, (text) => void process.stdout.write(text))
      service.lifecycle.onStop('printing of messages', () => following.stop())
    }

    const gatewayFile = own.GATEWAY_CONFIG ?? open?.gatewayFile
    if (gatewayFile === undefined) {
      service.logger.warn('GATEWAY_CONFIG is not set: no gateway was started')
      return sayFirstOwner(database, issuer.consoleUrl)
    }
    const source = fileSource(gatewayFile, { ...environment, ...open?.environment })
    const gatewayConfig = await source.load()
    const portSetting = gatewayFile === open?.gatewayFile ? 'GATEWAY_PORT' : undefined
    const gateway = await openGateway(service, { config: gatewayConfig, source, opaBin: own.OPA_BIN, portSetting })
    await gateway.ready
    beside.push(...gatewayBeside(gatewayConfig, gateway.inspectionUrl, config.console?.gateways))
    if (open) process.stdout.write(await open.announce({ gatewayUrl: gateway.url, adminUrl: admin.url }))
    await sayFirstOwner(database, issuer.consoleUrl)
  })
}

/**
 * For the console, which need not be told of it: unless one of the settings is called so, or its certificate is for
 * another name than this machine's.
 */
const gatewayBeside = (
  { inspection }: GatewayConfig,
  inspectionUrl: string | undefined,
  named: readonly { name: string }[] = [],
): Gateway[] => {
  if (!inspection || inspection.tls || inspectionUrl === undefined) return []
  const { port } = new URL(inspectionUrl)
  const isEverywhere = ['0.0.0.0', '::'].includes(inspection.host)
  const url = isEverywhere ? `http://127.0.0.1:${port}` : inspectionUrl
  return named.some(({ name }) => name === 'gateway')
    ? []
    : [{ name: 'gateway', url: new URL(url).origin, audience: inspection.audience }]
}

/** The parts' settings, before anything is opened; with the embedded database the key is made later. */
const checkSettings = () => {
  const key = process.env['DATABASE_URL'] ? undefined : Buffer.alloc(32).toString('base64')
  loadAll(
    () => loadConfig(settings.start, process.env),
    () => loadIssuerConfig({ ...process.env, KEY_ENCRYPTION_KEY: process.env['KEY_ENCRYPTION_KEY'] || key }),
    () => loadRelayConfig(process.env),
  )
}

interface Place {
  connection: DatabaseConnection
  /** Where what belongs to the data is kept. */
  folder: string
  /** What the embedded default supplies instead of the operator. */
  environment: Environment
}

/** The operator's database, or one of our own with its key beside it. */
const openPlace = async ({ lifecycle, logger, fail }: Service, own: StartSettings): Promise<Place> => {
  const dataDir = resolve(own.SURROGATE_DATA_DIR)
  if (own.DATABASE_URL !== undefined) return { connection: own.DATABASE_URL, folder: dataDir, environment: {} }
  const postgres = await startEmbeddedPostgres({ dataDir, logger, onLost: fail })
  lifecycle.onStop('embedded PostgreSQL', () => postgres.stop(), 60_000)
  const environment = { ...(await encryptionKeys(postgres.folder)), ...outboxOf(own) }
  return { connection: postgres.connection, folder: postgres.folder, environment }
}

/** The operator's keys, or those beside the data. */
const encryptionKeys = async (folder: string): Promise<Environment> =>
  process.env['KEY_ENCRYPTION_KEY']
    ? {}
    : {
        KEY_ENCRYPTION_KEY: await ownKeyEncryptionKey(folder),
        KEY_ENCRYPTION_KEY_PREVIOUS: process.env['KEY_ENCRYPTION_KEY_PREVIOUS'] || (await ownPreviousKey(folder)),
      }

/** With a database of our own it is no production, unless it says so: what no connector takes can be read. */
const outboxOf = (own: StartSettings): Environment =>
  own.NODE_ENV === 'production' || process.env['MESSAGE_OUTBOX']
    ? {}
    : { MESSAGE_OUTBOX: outboxIn(own.SURROGATE_DATA_DIR) }
