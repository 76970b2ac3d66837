import { checkFiles } from '../../gateway/check-files.ts'
import { gatewayJsonSchema } from '../../gateway/config/json-schema.ts'
import { fileSource, loadGatewayConfig } from '../../gateway/config/load.ts'
import { configWarnings } from '../../gateway/config/warnings.ts'
import { loadConfig } from '../../platform/config.ts'
import { didYouMean } from '../../platform/nearest.ts'
import { StartupError } from '../../platform/startup-error.ts'
import { counted } from '../cli/counted.ts'
import { parseOptions } from '../cli/options.ts'
import { settings } from '../cli/settings.ts'
import { processTerminal, type Terminal } from '../cli/terminal.ts'
import { type InspectSettings, type InspectValues, inspectVerbs } from '../gateway/inspect-verbs.ts'

/**
 * `surrogate gateway [--config f]` runs the gateway. `check [f]` says what is wrong with the file and those that it
 * names (0 or 1). `schema` prints the JSON Schema of the file, for editors. `inspect [--json]` asks the gateway that
 * runs with this file, or the one whose admin listener `--admin` names, how the targets of its upstreams are; with a
 * verb it asks the inspection listener (`inspectVerbs`).
 */
export const gatewayCommand = async (
  args: readonly string[],
  terminal: Terminal = processTerminal,
): Promise<number> => {
  const { env } = terminal
  const { values, positionals } = parseOptions(args, options, { positionals: true })
  const own = loadConfig(settings.gateway, env)
  const file = values.config ?? own.GATEWAY_CONFIG
  const [verb, ...others] = positionals
  if (verb === 'inspect') return inspect({ values: { ...values, config: file }, args: others, own, terminal })
  allow(values, ['config'], verb === undefined ? 'the gateway' : `gateway ${verb}`)
  if (verb === 'check' && others.length <= 1) return check(others[0] ?? file, own.OPA_BIN, terminal)
  if (verb === 'schema' && others.length === 0) return printSchema(terminal)
  if (verb !== undefined)
    throw new StartupError(`The gateway has no "${positionals.join(' ')}".`, { hint: 'See surrogate --help.' })

  const source = fileSource(file, env)
  const config = await source.load()
  // Neither check nor inspect waits for the gateway's own modules.
  const [{ serve }, { openAdmin }, { openGateway }] = await Promise.all([
    import('../cli/serve.ts'),
    import('../parts/admin.ts'),
    import('../parts/gateway.ts'),
  ])
  return serve({ name: 'gateway', level: own.LOG_LEVEL }, async (service) => {
    await openAdmin(service, config.admin)
    await openGateway(service, { config, source, opaBin: own.OPA_BIN })
  })
}

const options = {
  config: { type: 'string' },
  admin: { type: 'string' },
  json: { type: 'boolean' },
  url: { type: 'string' },
  'token-file': { type: 'string' },
  offline: { type: 'boolean' },
  sid: { type: 'string' },
  subject: { type: 'string' },
  route: { type: 'string' },
  verdict: { type: 'string' },
  limit: { type: 'string' },
} as const

/** Throws `StartupError` for options that belong to something else. */
const allow = (values: object, known: readonly string[], what: string): void => {
  const foreign = Object.keys(values).filter((name) => !known.includes(name))
  if (foreign.length === 0) return
  const names = foreign.map((name) => `--${name}`).join(' and ')
  throw new StartupError(`${names} ${foreign.length > 1 ? 'do' : 'does'} not belong to ${what}.`, {
    hint: 'See surrogate gateway --help.',
  })
}

const check = async (file: string, opaBin: string | undefined, terminal: Terminal): Promise<number> => {
  const { env, say } = terminal
  const tell = ({ message, hint }: StartupError) => terminal.complain(`${message}\n${hint}\n`)
  try {
    const config = await loadGatewayConfig(file, env)
    const mistakes = await checkFiles(config, opaBin)
    for (const mistake of mistakes) tell(mistake)
    if (mistakes.length > 0) return 1
    const { routes, issuers, allowInsecure } = config
    say(`${file} is right: ${counted(routes.length, 'route')}, ${counted(issuers.length, 'issuer')}.\n`)
    if (allowInsecure.length > 0) say(`Insecure, and allowed: ${allowInsecure.join(', ')}.\n`)
    for (const warning of configWarnings(config)) say(`Warning: ${warning}.\n`)
    return 0
  } catch (error) {
    if (!(error instanceof StartupError)) throw error
    tell(error)
    return 1
  }
}

const inspect = async (invocation: {
  values: InspectValues & { admin?: string | undefined }
  args: readonly string[]
  own: InspectSettings
  terminal: Terminal
}): Promise<number> => {
  const { values, args, own, terminal } = invocation
  const [name, ...rest] = args
  if (name === undefined) {
    allow(values, ['config', 'admin', 'json'], 'gateway inspect')
    const { adminUrlOf, askGateway, inspectionText } = await import('../gateway/inspect.ts')
    const admin = values.admin ?? adminUrlOf((await loadGatewayConfig(values.config, terminal.env)).admin)
    const inspected = await askGateway(admin)
    terminal.say(values.json ? `${JSON.stringify(inspected, null, 2)}\n` : inspectionText(inspected))
    return 0
  }
  const verb = Object.hasOwn(inspectVerbs, name) ? inspectVerbs[name] : undefined
  const hint = `Use one of ${Object.keys(inspectVerbs).join(', ')}.`
  if (!verb)
    throw new StartupError(`gateway inspect has no "${name}"${didYouMean(name, Object.keys(inspectVerbs))}.`, { hint })
  allow(values, verb.options, `gateway inspect ${name}`)
  const [least, most] = verb.args
  if (rest.length < least || rest.length > most)
    throw new StartupError(`That is not how to call gateway inspect ${name}.`, {
      hint: `Usage: surrogate gateway inspect ${verb.usage}`,
    })
  return verb.run({ values, args: rest, own, terminal })
}

const printSchema = ({ say }: Terminal): number => {
  say(`${JSON.stringify(gatewayJsonSchema(), null, 2)}\n`)
  return 0
}
