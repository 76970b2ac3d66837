import { loadIssuerConfig } from '../../issuer/config.ts'
import { loadAll, loadConfig } from '../../platform/config.ts'
import { parseOptions } from '../cli/options.ts'
import { serve } from '../cli/serve.ts'
import { settings } from '../cli/settings.ts'
import { openAdmin } from '../parts/admin.ts'
import { openBus, openDatabase } from '../parts/database.ts'
import { openIssuer, sayFirstOwner } from '../parts/issuer.ts'

/** `surrogate issuer`: the token issuer and the Management API, on the database of DATABASE_URL. */
export const issuerCommand = async (args: readonly string[]): Promise<number> => {
  parseOptions(args, {})
  loadAll(
    () => loadConfig(settings.issuer, process.env),
    () => loadIssuerConfig(process.env),
  )
  const own = loadConfig(settings.issuer, process.env)
  const config = loadIssuerConfig(process.env)
  return serve({ name: 'issuer', level: own.LOG_LEVEL }, async (service) => {
    await openAdmin(service, { host: own.HOST, port: own.ADMIN_PORT })
    const database = await openDatabase(service, own.DATABASE_URL)
    const bus = await openBus(service, { database, nats: own })
    const policy = {
      path: own.POLICY_PATH,
      shadowPath: own.POLICY_SHADOW_PATH,
      units: own.POLICY_UNITS,
      opaBin: own.OPA_BIN,
    }
    const issuer = await openIssuer(service, { config, database, bus, policy })
    if (issuer.bootstrap) sayOnce(issuer.bootstrap)
    await sayFirstOwner(database, issuer.consoleUrl)
  })
}

/** Shown now and never again: only its digest is kept. */
export const sayOnce = ({ clientId, clientSecret }: { clientId: string; clientSecret: string }) =>
  process.stderr.write(
    `A first application for the Management API was made; keep its secret, it is not shown again.\n  client id:     ${clientId}\n  client secret: ${clientSecret}\n`,
  )
