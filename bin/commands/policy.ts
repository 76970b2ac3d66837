import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { StartupError } from '../../platform/startup-error.ts'
import { CompilerMissing, findOpa, issueLine, PolicyError } from '../../policies/engine/index.ts'
import { type Invocation, UsageError } from '../policy/invocation.ts'

const usage = `Usage: surrogate policy <command> [options]

  build    compiles a folder of rules to a bundle
           --output <file>       default <path>/bundle.tar.gz
           --revision <text>     default a fingerprint of the rules
           --serial <number>     grows from one published bundle to the next; default the time in seconds when signed
           --signing-key <file>  private key in PEM; --key-id <name> (default), --algorithm ES256 | RS256, --scope <text>
  check    finds what build would refuse, and mistakes: unused variables, misspelt input; warns of rules that
           another spelling of a path gets by, and of cases that take more than a tenth of their units; with
           --config of routes whose rules read the body without policyBody
           --cases <folder>      as for test
           --config <file>       a gateway.yaml: warns only where its upstreams take spellings for the same
  test     runs the _test.rego files beside the rules, and HTTP cases through the compiled rules
           --cases <folder>      default ./test/policies/cases, if it is there
           --config <file>       a gateway.yaml whose routes the cases meet; without it each case describes its route
           --coverage            which lines of the rules were evaluated
           --threshold <percent> fails when fewer were
           --junit <file>        writes the results there too
  explain  shows the rules that made a decision: <file> | - | --case <name>
           The file holds an input, or lines of a decision log: --id <decision> of them, else the last denial.
           --json                as data
  bench    measures a decision: <file> with an input | --case <name>, default the first case
           --decisions <number>  default 200000
  eval     evaluates a rule as "opa eval" does: <data.path.of.rule>
           -d, --data <folder | file>, -b, --bundle <folder | bundle>   may be repeated, default ./policies
           -i, --input <file>, -I, --stdin-input
           -f, --format json (default) | pretty | raw, --metrics
           --fail, --fail-defined   1 where the rule is undefined, or where it is not; 2 where there is no answer
  serve    answers OPA's Data API over HTTP: [<folder> | <bundle> | <address of one>], followed as it changes
           --addr <host:port>    default 127.0.0.1:8181; elsewhere than on loopback --token-file is needed
           --token-file <file>   who may ask: one bearer token a line, read again as it changes
           --tls-cert-file, --tls-private-key-file <file>
           --decision-log stdout | <file>, --decision-log-mask <JSON pointer>, may be repeated
           --max-input <bytes>   default 1048576; --units <number> of work for each evaluation

  --path <folder>      the rules, default ./policies
  --entrypoint <name>  explain and bench, default that of the log, the case, or the gateway

OPA_BIN names the Rego compiler; without it, opa on the PATH or the one that the package brings is used.
Exit codes: 0 well, 1 mistakes or failed tests, 2 wrong usage, 3 no compiler.`

/** Of one command, where it has a section; else all of it. */
const usageOf = (name: string): string => {
  const [head, ...sections] = usage.split(/\n(?= {2}[a-z]+ {2,}[a-z])|\n\n(?= {2}--path)/)
  const section = sections.find((one) => one.startsWith(`  ${name} `))
  return section === undefined ? usage : [head!.trimEnd(), section, sections.at(-1)].join('\n\n')
}

/** Runs `surrogate policy …`; resolves to the exit code. */
export const policyCommand = async (
  args: string[],
  {
    say = (line: string) => console.log(line),
    complain = (line: string) => console.error(line),
    opaBin = process.env['OPA_BIN'],
  }: { say?: (line: string) => void; complain?: (line: string) => void; opaBin?: string | undefined } = {},
): Promise<number> => {
  const [name = '', ...rest] = args
  if (name === 'help' || args.some((argument) => ['--help', '-h'].includes(argument))) {
    say(usageOf(name))
    return 0
  }
  try {
    const command = commands.get(name)
    if (!command) throw new UsageError(name === '' ? 'name a command' : `there is no command "${name}"`)
    const invocation = { ...parse(rest, command), opa: () => findOpa({ opaBin }), say, complain }
    const run = await command.load()
    return await run(invocation)
  } catch (error) {
    if (error instanceof UsageError) {
      complain(`${error.message}\n\n${usageOf(name)}`)
      return 2
    }
    if (error instanceof StartupError) {
      complain(`${error.message}\n${error.hint}`)
      return 2
    }
    if (!(error instanceof PolicyError)) throw error
    for (const line of error.issues.length > 0 ? error.issues.map(issueLine) : [error.message]) complain(line)
    return error instanceof CompilerMissing ? 3 : 1
  }
}

interface Command {
  /** Its module, when it runs. */
  load: () => Promise<(invocation: Invocation) => Promise<number>>
  options: ParseArgsOptionsConfig
  /** Whether it takes names beside options. */
  positionals?: boolean
}

const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const
const list = { type: 'string', multiple: true } as const
const questions = { path: text, cases: text, config: text, case: text, entrypoint: text }
const signing = { serial: text, 'signing-key': text, 'key-id': text, algorithm: text, scope: text }

const commands = new Map<string, Command>([
  [
    'build',
    {
      load: async () => (await import('../policy/build.ts')).buildBundle,
      options: { path: text, output: text, revision: text, ...signing },
    },
  ],
  [
    'check',
    {
      load: async () => (await import('../policy/check.ts')).checkPolicies,
      options: { path: text, cases: text, config: text },
    },
  ],
  [
    'test',
    {
      load: async () => (await import('../policy/test.ts')).testPolicies,
      options: { path: text, cases: text, config: text, junit: text, threshold: text, coverage: flag },
    },
  ],
  [
    'explain',
    {
      load: async () => (await import('../policy/explain.ts')).explainDecision,
      options: { ...questions, id: text, json: flag },
      positionals: true,
    },
  ],
  [
    'bench',
    {
      load: async () => (await import('../policy/bench.ts')).benchPolicies,
      options: { ...questions, decisions: text },
      positionals: true,
    },
  ],
  [
    'eval',
    {
      load: async () => (await import('../policy/eval.ts')).evalPolicies,
      options: {
        data: { ...list, short: 'd' },
        bundle: { ...list, short: 'b' },
        input: { ...text, short: 'i' },
        'stdin-input': { ...flag, short: 'I' },
        format: { ...text, short: 'f' },
        fail: flag,
        'fail-defined': flag,
        metrics: flag,
      },
      positionals: true,
    },
  ],
  [
    'serve',
    {
      load: async () => (await import('../policy/serve.ts')).servePolicies,
      options: {
        path: text,
        addr: text,
        'token-file': text,
        'tls-cert-file': text,
        'tls-private-key-file': text,
        'max-input': text,
        units: text,
        'decision-log': text,
        'decision-log-mask': list,
      },
      positionals: true,
    },
  ],
  ['generate', { load: async () => (await import('../policy/generate.ts')).generatePolicies, options: {} }],
])

const parse = (
  args: string[],
  { options, positionals: allowPositionals = false }: Command,
): Pick<Invocation, 'path' | 'values' | 'flags' | 'lists' | 'positionals'> => {
  try {
    const { values, positionals } = parseArgs({ args, options, allowPositionals, allowNegative: false })
    const texts: Record<string, string> = {}
    const flags: Record<string, boolean> = {}
    const lists: Record<string, string[]> = {}
    for (const [name, value] of Object.entries(values)) {
      if (typeof value === 'string') texts[name] = value
      else if (Array.isArray(value)) lists[name] = value.map(String)
      else flags[name] = value === true
    }
    return { path: texts['path'] ?? 'policies', values: texts, flags, lists, positionals }
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}
