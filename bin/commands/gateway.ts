import { checkFiles } from '../../gateway/check-files.ts'
import { gatewayJsonSchema } from '../../gateway/config/json-schema.ts'
import { fileSource, loadGatewayConfig } from '../../gateway/config/load.ts'
import { configWarnings } from '../../gateway/config/warnings.ts'
import { loadConfig } from '../../platform/config.ts'
import { StartupError } from '../../platform/startup-error.ts'
import { counted } from '../cli/counted.ts'
import { parseOptions } from '../cli/options.ts'
import { serve } from '../cli/serve.ts'
import { settings } from '../cli/settings.ts'
import { adminUrlOf, askGateway, inspectionText } from '../gateway/inspect.ts'
import { openAdmin } from '../parts/admin.ts'
import { openGateway } from '../parts/gateway.ts'

/**
 * `surrogate gateway [--config f]` runs the gateway. `check [f]` says what is wrong with the file and those that it
 * names (0 or 1). `schema` prints the JSON Schema of the file, for editors. `inspect [--json]` asks the gateway that
 * runs with this file, or the one whose admin listener `--admin` names, how the targets of its upstreams are.
 */
export const gatewayCommand = async (args: readonly string[]): Promise<number> => {
  const { values, positionals } = parseOptions(
    args,
    { config: { type: 'string' }, admin: { type: 'string' }, json: { type: 'boolean', default: false } },
    { positionals: true },
  )
  const own = loadConfig(settings.gateway, process.env)
  const [verb, file, ...others] = positionals
  if (verb === 'check' && others.length === 0) {
    return check(file ?? values.config ?? own.GATEWAY_CONFIG, own.OPA_BIN)
  }
  if (verb === 'inspect' && file === undefined) {
    const { admin } = values
    return inspect(
      admin ?? adminUrlOf((await loadGatewayConfig(values.config ?? own.GATEWAY_CONFIG, process.env)).admin),
      values.json,
    )
  }
  if (values.admin !== undefined || values.json)
    throw new StartupError('--admin and --json belong to gateway inspect.', { hint: 'See surrogate --help.' })
  if (verb === 'schema' && file === undefined) return printSchema()
  if (verb !== undefined)
    throw new StartupError(`The gateway has no "${positionals.join(' ')}".`, { hint: 'See surrogate --help.' })

  const source = fileSource(values.config ?? own.GATEWAY_CONFIG, process.env)
  const config = await source.load()
  return serve({ name: 'gateway', level: own.LOG_LEVEL }, async (service) => {
    await openAdmin(service, config.admin)
    await openGateway(service, { config, source, opaBin: own.OPA_BIN })
  })
}

const check = async (file: string, opaBin: string | undefined): Promise<number> => {
  try {
    const config = await loadGatewayConfig(file, process.env)
    const mistakes = await checkFiles(config, opaBin)
    for (const mistake of mistakes) tell(mistake)
    if (mistakes.length > 0) return 1
    const { routes, issuers, allowInsecure } = config
    process.stdout.write(
      `${file} is right: ${counted(routes.length, 'route')}, ${counted(issuers.length, 'issuer')}.\n`,
    )
    if (allowInsecure.length > 0) process.stdout.write(`Insecure, and allowed: ${allowInsecure.join(', ')}.\n`)
    for (const warning of configWarnings(config)) process.stdout.write(`Warning: ${warning}.\n`)
    return 0
  } catch (error) {
    if (!(error instanceof StartupError)) throw error
    tell(error)
    return 1
  }
}

const inspect = async (adminUrl: string, json: boolean): Promise<number> => {
  const inspected = await askGateway(adminUrl)
  process.stdout.write(json ? `${JSON.stringify(inspected, null, 2)}\n` : inspectionText(inspected))
  return 0
}

const tell = ({ message, hint }: StartupError) => process.stderr.write(`${message}\n${hint}\n`)

const printSchema = (): number => {
  process.stdout.write(`${JSON.stringify(gatewayJsonSchema(), null, 2)}\n`)
  return 0
}
