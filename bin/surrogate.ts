#!/usr/bin/env node
import { flushStdout } from '../platform/line-writer.ts'
import { compileHere } from './cli/compile-here.ts'
import { exitCodeOf } from './cli/terminal.ts'

/**
 * The command line. A command is a row of this table; its module is loaded only when it runs and answers with the exit
 * code: 0 done, 1 a check failed, 2 usage or configuration, 3 something needed is unreachable.
 */
export type Run = (args: readonly string[]) => Promise<number>

interface Command {
  usage: string
  summary: string
  /** What else its own help says. */
  more?: readonly string[]
  load(): Promise<Run>
}

const commands: Record<string, Command> = {
  start: {
    usage: 'start [--demo]',
    summary: 'issuer, gateway and relay in one process, with an embedded PostgreSQL unless DATABASE_URL is set',
    load: async () => (await import('./commands/start.ts')).startCommand,
  },
  issuer: {
    usage: 'issuer',
    summary: 'the token issuer and the Management API',
    load: async () => (await import('./commands/issuer.ts')).issuerCommand,
  },
  gateway: {
    usage: 'gateway [--config <file>] | gateway check <file> | gateway inspect [<verb>] [--json] | gateway schema',
    summary: 'the API gateway; the check of its configuration; what it does and why; the JSON Schema, for editors',
    more: [
      'surrogate gateway inspect                           how the targets of upstreams are (admin listener)',
      'surrogate gateway inspect routes                    the routes in the order of precedence',
      'surrogate gateway inspect match [<method>] <url>    which route takes it, and near misses; 1 when none does',
      'surrogate gateway inspect decisions                 the last decisions, newest first',
      'surrogate gateway inspect why <request id>          why it was decided so, and what would have allowed it',
      'surrogate gateway inspect tail                      decisions as they are made, until Ctrl-C',
      '',
      '  --config <file>      gateway.yaml, which says where the gateway is; else GATEWAY_CONFIG',
      '  --admin <url>        of inspect alone: the admin listener of another gateway',
      '  --url <url>          the inspection listener of another gateway',
      '  --offline            routes and match: by the file alone, as also when it has no inspection',
      '  --sid, --subject, --route <value>, --verdict allowed | denied | failed    of decisions and tail',
      '  --limit <number>     of decisions',
      '  --token-file <file>  else INSPECTION_TOKEN, else INSPECTION_CLIENT_ID and INSPECTION_CLIENT_SECRET',
      '  --json               the answer as data; tail prints a line of JSON for each decision',
    ],
    load: async () => (await import('./commands/gateway.ts')).gatewayCommand,
  },
  relay: {
    usage: 'relay',
    summary: 'the delivery of webhooks',
    load: async () => (await import('./commands/relay.ts')).relayCommand,
  },
  migrate: {
    usage: 'migrate',
    summary: 'brings the schema of DATABASE_URL up to date',
    load: async () => (await import('./commands/migrate.ts')).migrateCommand,
  },
  demo: {
    usage: 'demo',
    summary: 'walks the flows, impersonation and signing in, against a running "start --demo", showing every step',
    load: async () => (await import('./commands/demo.ts')).demoCommand,
  },
  login: {
    usage: 'login --client <id> [--issuer <url>] [--resource <uri>] [--user <name> --redirect-uri <uri>] [--json]',
    summary: 'signs you in by a code for your browser; with --user it walks the pages itself, and shows every step',
    more: [
      'Without --user it prints an address and a code, waits until you have allowed it there, and keeps the tokens for',
      'surrogate token, in surrogate/logins.json of XDG_CONFIG_HOME (~/.config). The application has isDeviceFlow.',
      '  --scope <names>      "openid profile offline_access" by default',
      '  --resource <uri>     may be repeated; tokens are for the first',
      '',
      'With --user <name> --redirect-uri <uri> it is browser and application at once, and keeps nothing:',
      '  --scope <names>, --prompt, --acr, --max-age <value>   of the request; the scope is "openid profile" by default',
      '  --resource <uri>                                      may be repeated; the token is for the first',
      '  --password-file <file>                                else LOGIN_PASSWORD, else it is asked for; - reads it',
      '  --client-secret-file <file>                           else LOGIN_CLIENT_SECRET, else none',
      '  --totp-secret <base32>                                of an authenticator app, where a second factor is asked for',
      '  --codes-from <file>                                   where messages of development go (MESSAGE_OUTBOX)',
      '  --consent                                             allows what an application asks for, and agrees to terms',
      '  --json                                                one JSON object instead',
      '',
      'surrogate login explain --user <id or name> --client <id>: why the sign-in rules decide as they do (DATABASE_URL)',
      '  --amr pwd --amr otp                                   what was proven so far; without it: before the first proof',
      '  --stage prove | mfa | finish | session                instead of those that follow from --amr',
      '  --factor <kind>                                       a second factor that the person has; may be repeated',
      '  --ip, --country, --at <time>, --failures <number>     from where, when, after how many failures',
      '  --known-device                                        in a browser where the person has signed in before',
      '  --path <folder>                                       the rules, else POLICY_PATH, else those of Surrogate',
      '  --rules                                               every rule that was looked at, also those that did not hold',
      '  --json                                                input, decision and rules as data',
    ],
    load: async () => (await import('./commands/login.ts')).loginCommand,
  },
  token: {
    usage: 'token [--issuer <url>] [--resource <uri>]',
    summary: 'prints an access token of whoever signed in with login, a fresh one where needed',
    load: async () => (await import('./commands/token.ts')).tokenCommand,
  },
  logout: {
    usage: 'logout [--issuer <url>]',
    summary: 'gives up and forgets what login has kept',
    load: async () => (await import('./commands/logout.ts')).logoutCommand,
  },
  console: {
    usage: 'console invite --role owner|operator|support|integrator|auditor',
    summary: 'prints a link that makes whoever opens it a member of the administration console, once',
    load: async () => (await import('./commands/console.ts')).consoleCommand,
  },
  keys: {
    usage: 'keys list | rotate [--now] [--algorithm ES256|EdDSA|RS256 | --id-tokens] | reencrypt',
    summary: 'shows and rotates signing keys, and brings stored secrets under another key-encryption key',
    load: async () => (await import('./commands/keys.ts')).keysCommand,
  },
  passwords: {
    usage: 'passwords build-filter <list> --out <file> [--false-positives <rate>]',
    summary: 'makes the file of breached passwords that BREACHED_PASSWORDS_FILE names',
    load: async () => (await import('./commands/passwords.ts')).passwordsCommand,
  },
  messages: {
    usage: 'messages [--follow]',
    summary: 'prints the mail and SMS that a service in development would have sent, codes included',
    load: async () => (await import('./commands/messages.ts')).messagesCommand,
  },
  describe: {
    usage: 'describe events | asyncapi',
    summary: 'prints the JSON Schema or the AsyncAPI 3 document of all webhook events',
    load: async () => (await import('./commands/describe.ts')).describeCommand,
  },
  policy: {
    usage: 'policy build | check | test | explain | bench | eval | serve',
    summary: "compiles, checks, tests, explains, measures and evaluates Rego policies, and serves them by OPA's API",
    load: async () => {
      const { policyCommand } = await import('./commands/policy.ts')
      return (args) => policyCommand([...args])
    },
  },
}

const help = () => {
  const rows = Object.values(commands)
  const width = Math.max(...rows.map(({ usage }) => usage.length))
  return [
    'Usage: surrogate <command>',
    '',
    ...rows.map(({ usage, summary }) => `  ${usage.padEnd(width)}  ${summary}`),
    '',
    'Settings are environment variables; docs/configuration.md lists them.',
    'Exit codes: 0 done, 1 a check failed, 2 usage or configuration, 3 something needed is unreachable.',
    '',
  ].join('\n')
}

const servers = new Set(['start', 'issuer', 'gateway', 'relay'])

const isServer = (name: string, [verb]: readonly string[]): boolean =>
  name === 'policy' ? verb === 'serve' : servers.has(name) && (name !== 'gateway' || !verb || verb.startsWith('-'))

const askedForHelp = (args: readonly string[]) => args.includes('--help') || args.includes('-h')

const main = async ([name = '', ...args]: readonly string[]): Promise<number> => {
  if (name === 'help' || askedForHelp([name])) {
    process.stdout.write(help())
    return 0
  }
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (command === undefined) {
    process.stderr.write(`${name === '' ? 'A command is missing.' : `There is no command "${name}".`}\n\n${help()}`)
    return 2
  }
  // `policy` explains its own subcommands.
  if (askedForHelp(args) && name !== 'policy') {
    const more = command.more ? ['', ...command.more] : []
    process.stdout.write(`${[`Usage: surrogate ${command.usage}`, '', command.summary, ...more].join('\n')}\n`)
    return 0
  }
  // What serves does so for long, and `serve` sees to its end.
  if (!isServer(name, args)) compileHere()
  const run = await command.load()
  return run(args)
}

// Whoever reads what a command prints may have seen enough, as in `surrogate describe events | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})
process.exit(
  await main(process.argv.slice(2))
    .catch((error: unknown) => exitCodeOf(error))
    .finally(flushStdout),
)
