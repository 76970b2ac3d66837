import { loadAll, loadConfig } from '../../platform/config.ts'
import { loadRelayConfig } from '../../relay/config.ts'
import { parseOptions } from '../cli/options.ts'
import { serve } from '../cli/serve.ts'
import { settings } from '../cli/settings.ts'
import { openAdmin } from '../parts/admin.ts'
import { openBus, openDatabase } from '../parts/database.ts'
import { openRelay } from '../parts/relay.ts'

/** `surrogate relay`: the delivery of webhooks, on the database of DATABASE_URL. */
export const relayCommand = async (args: readonly string[]): Promise<number> => {
  parseOptions(args, {})
  loadAll(
    () => loadConfig(settings.relay, process.env),
    () => loadRelayConfig(process.env),
  )
  const own = loadConfig(settings.relay, process.env)
  const config = loadRelayConfig(process.env)
  return serve({ name: 'relay', level: own.LOG_LEVEL }, async (service) => {
    await openAdmin(service, { host: own.HOST, port: own.ADMIN_PORT })
    const database = await openDatabase(service, own.DATABASE_URL)
    const bus = await openBus(service, { database, nats: own })
    const keys = { current: own.KEY_ENCRYPTION_KEY, previous: own.KEY_ENCRYPTION_KEY_PREVIOUS }
    await openRelay(service, { config, database, bus, keys })
  })
}
