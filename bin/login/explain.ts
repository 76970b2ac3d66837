import { resolve } from 'node:path'
import { type ExplainFacts, findExplainFacts } from '../../issuer/interaction/explain-facts-store.ts'
import { createSignInPolicy, type SignInQuestion } from '../../issuer/interaction/sign-in-policy.ts'
import { loadConfig } from '../../platform/config.ts'
import { createDatabase, type Query } from '../../platform/database/database.ts'
import { visitEmbeddedPostgres } from '../../platform/embedded-postgres/visit.ts'
import { createLogger, type Logger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { AppError } from '../../platform/problem.ts'
import { StartupError } from '../../platform/startup-error.ts'
import { type ExplainedRule, explain, explanationLines } from '../../policies/authoring/explain.ts'
import { loadPolicies, PolicyError, shippedPolicies } from '../../policies/decide.ts'
import { CompilerMissing, findOpa, issueLine, readSources, type Sources } from '../../policies/engine/index.ts'
import {
  type SignInDecision,
  type SignInRequirement,
  type SignInStage,
  signInEntrypoint,
  signInStages,
} from '../../policies/sign-in.ts'
import { parseOptions } from '../cli/options.ts'
import { settings } from '../cli/settings.ts'

/**
 * `surrogate login explain`: asks the sign-in rules about a person and an application of the database, and shows what
 * they decide, by which rule and line, and what the person would be asked. Nobody signs in, nothing is written. 0 the
 * rules decided, 1 they gave no decision, or there is no such person or application.
 */
export const explainCommand = async (args: readonly string[]): Promise<number> => {
  const { values } = parseOptions(args, {
    user: { type: 'string' },
    client: { type: 'string' },
    stage: { type: 'string' },
    amr: { type: 'string', multiple: true, default: [] },
    factor: { type: 'string', multiple: true, default: [] },
    ip: { type: 'string', default: '127.0.0.1' },
    country: { type: 'string' },
    at: { type: 'string' },
    failures: { type: 'string', default: '0' },
    'known-device': { type: 'boolean', default: false },
    path: { type: 'string' },
    rules: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  })
  const own = loadConfig(settings.login, process.env)
  const user = needed(values.user, '--user')
  const clientId = needed(values.client, '--client')
  const logger = createLogger({ name: 'login', level: own.LOG_LEVEL })
  const amr = values.amr.flatMap((names) => names.split(','))
  const facts = await withDatabase(own, logger, (query) => findExplainFacts(query, { user, clientId }))
  const { person, client, mfa } = facts
  if (!person || !client) {
    say(person ? `There is no application ${clientId}.` : `There is nobody whom "${user}" names.`)
    return 1
  }

  const known = {
    client,
    factors: { available: values.factor, used: amr.flatMap((name) => methodOf(name)?.kind ?? []) },
    amr,
    ...acrOf(amr),
    ip: values.ip,
    ...(values.country !== undefined && { country: values.country }),
    device: { known: values['known-device'] },
    failures: wholeNumber(values.failures, '--failures'),
    now: momentOf(values.at),
    settings: { mfa: { ...mfa, organizations: person.mfaOrganizations } },
  }
  const { id, roles, organizations } = person
  const questionAt = (stage: SignInStage): SignInQuestion => ({
    stage,
    ...known,
    ...(stage !== 'prove' && { subject: { id, roles, organizations } }),
  })

  try {
    const asked = await openRules(values.path ?? own.POLICY_PATH, own.OPA_BIN, logger)
    const answers: Answer[] = []
    for (const stage of stagesOf(values.stage, amr)) {
      const question = questionAt(stage)
      const decision = asked.policy.decideSignIn(question)
      const trace = asked.trace && (await asked.trace(question))
      answers.push({ stage, question, decision, trace, due: dueOf(decision, question) })
    }
    if (values.json) say(JSON.stringify({ rules: asked.name, answers: answers.map(asJson) }, null, 2))
    else for (const line of lines({ person, client, asked, answers, all: values.rules })) say(line)
    return 0
  } catch (error) {
    // Logged with its cause where it happened.
    if (error instanceof AppError) {
      say('The rules give no decision: whoever signs in gets 503.')
      return 1
    }
    if (!(error instanceof PolicyError)) throw error
    for (const line of error.issues.length > 0 ? error.issues.map(issueLine) : [error.message]) say(line)
    return 1
  }
}

const say = (line: string) => void process.stdout.write(`${line}\n`)

const usage = 'See surrogate login --help and docs/sign-in-rules.md.'

const needed = (value: string | undefined, name: string): string => {
  if (value === undefined || value === '') throw new StartupError(`${name} is missing.`, { hint: usage })
  return value
}

const wholeNumber = (text: string, name: string): number => {
  if (!/^\d{1,9}$/.test(text)) throw new StartupError(`${name} must be a number.`, { hint: usage })
  return Number(text)
}

/** In seconds. */
const momentOf = (text: string | undefined): number => {
  const moment = text === undefined ? Date.now() : Date.parse(text)
  if (Number.isNaN(moment)) {
    throw new StartupError('--at is no time.', { hint: 'Such as 2026-01-07T13:00:00+01:00.' })
  }
  return Math.floor(moment / 1_000)
}

const stagesOf = (name: string | undefined, amr: readonly string[]): readonly SignInStage[] => {
  if (name === undefined) return amr.length === 0 ? ['prove'] : ['mfa', 'finish']
  const stage = signInStages.find((one) => one === name)
  if (!stage) throw new StartupError(`There is no stage "${name}".`, { hint: `Use one of ${signInStages.join(', ')}.` })
  return [stage]
}

interface Method {
  /** Of proof. */
  kind: string
  category: 'knowledge' | 'possession'
  resistsPhishing?: true
}

/** By their names of RFC 8176. */
const methods: Readonly<Record<string, Method>> = {
  pwd: { kind: 'password', category: 'knowledge' },
  otp: { kind: 'totp', category: 'possession' },
  sms: { kind: 'phone_code', category: 'possession' },
  hwk: { kind: 'passkey', category: 'possession', resistsPhishing: true },
  swk: { kind: 'passkey', category: 'possession', resistsPhishing: true },
}

const methodOf = (name: string): Method | undefined => (Object.hasOwn(methods, name) ? methods[name] : undefined)

const acrs = { basic: 'urn:surrogate:acr:basic', mfa: 'urn:surrogate:acr:mfa', phr: 'urn:surrogate:acr:phr' } as const

const acrOf = (amr: readonly string[]): { acr?: string } => {
  const used = amr.flatMap((name) => methodOf(name) ?? [])
  if (used.some(({ resistsPhishing }) => resistsPhishing)) return { acr: acrs.phr }
  if (amr.includes('mfa') || new Set(used.map(({ category }) => category)).size > 1) return { acr: acrs.mfa }
  return amr.length > 0 ? { acr: acrs.basic } : {}
}

const withDatabase = async <Result>(
  own: { DATABASE_URL?: string | undefined; SURROGATE_DATA_DIR: string },
  logger: Logger,
  read: (query: Query) => Promise<Result>,
): Promise<Result> => {
  const visit =
    own.DATABASE_URL === undefined
      ? await visitEmbeddedPostgres({ dataDir: resolve(own.SURROGATE_DATA_DIR), logger })
      : undefined
  try {
    const database = createDatabase({ connection: own.DATABASE_URL ?? visit!.connection, logger })
    try {
      await database.ping()
      return await read(database.query)
    } finally {
      await database.close()
    }
  } finally {
    await visit?.release()
  }
}

/** The rules as an issuer with this POLICY_PATH asks them. Without their sources or a compiler there is no `trace`. */
const openRules = async (path: string | undefined, opaBin: string | undefined, logger: Logger) => {
  const set = path === undefined ? undefined : await loadPolicies({ path, opaBin, logger })
  const policy = await createSignInPolicy({
    ...(set && { policies: { current: () => set } }),
    logger,
    metrics: createMetrics(),
  })
  const { isShipped, revision } = policy.rules()
  const folder = isShipped || path === undefined ? shippedPolicies : path
  const sources = await readSources(folder).catch(() => undefined)
  const opa = await findOpa({ opaBin }).catch((error: unknown) => {
    if (error instanceof CompilerMissing) return undefined
    throw error
  })
  const missing = sources === undefined ? 'a bundle has no lines: name its folder with --path' : 'there is no compiler'
  return {
    policy,
    name: `${isShipped ? 'those that come with Surrogate' : folder}, revision ${revision}`,
    sources,
    missing,
    trace:
      sources && opa
        ? async (question: SignInQuestion) =>
            (await explain({ sources, opa, entrypoint: signInEntrypoint, input: { version: 1, ...question } })).rules
        : undefined,
  }
}

interface Answer {
  stage: SignInStage
  question: SignInQuestion
  decision: SignInDecision
  trace: ExplainedRule[] | undefined
  due: readonly SignInRequirement[]
}

/** What is not done yet, of what a decision requires. A test for machines is asked for once in each sign-in. */
const isDone: Readonly<Record<SignInRequirement, (question: SignInQuestion) => boolean>> = {
  captcha: () => false,
  mfa: ({ acr }) => acr === acrs.mfa || acr === acrs.phr,
  phr: ({ acr }) => acr === acrs.phr,
  enrol: ({ factors }) => factors.available.length > 0,
}

const dueOf = ({ require }: SignInDecision, question: SignInQuestion) =>
  require.filter((name) => !isDone[name](question))

const asJson = ({ trace, question, ...answer }: Answer) => ({
  ...answer,
  input: { version: 1, ...question },
  ...(trace && { because: reasonsIn(trace), trace }),
})

/** The sets of the package that files add to. */
const contributions = new Set(['deny', 'require', 'idle_ttl', 'absolute_ttl'])

/** The rules that made the decision: those that added something, each once. */
const reasonsIn = (rules: readonly ExplainedRule[]): { rule: string; file: string; line: number }[] => {
  const found = new Map<string, { rule: string; file: string; line: number }>()
  const visit = ({ name, file, line, held, rules: asked }: ExplainedRule): void => {
    const [rule = ''] = name.split(/[.[]/)
    if (held && contributions.has(rule)) found.set(`${file}:${line}`, { rule, file, line })
    for (const one of asked) visit(one)
  }
  for (const rule of rules) visit(rule)
  return [...found.values()]
}

const asked: Readonly<Record<SignInRequirement, (question: SignInQuestion) => string>> = {
  captcha: () => 'the test for machines',
  mfa: ({ factors: { available } }) =>
    available.length > 0 ? `a second factor (${available.join(', ')})` : 'a second factor, once there is one',
  phr: () => 'a passkey',
  enrol: () => 'to add a second factor',
}

const lines = ({
  person,
  client,
  asked: { name, sources, missing },
  answers,
  all,
}: Pick<ExplainFacts, 'client'> & {
  person: ExplainFacts['person']
  asked: { name: string; sources: Sources | undefined; missing: string }
  answers: readonly Answer[]
  all: boolean
}): string[] => {
  const list = (names: readonly string[]) => (names.length > 0 ? names.join(', ') : 'none')
  const result = [
    `person    ${person.id}${person.username === null ? '' : ` (${person.username})`}, roles: ${list(person.roles)}`,
    `client    ${client.id} (${client.name}), ${client.type}${client.isThirdParty ? ', third-party' : ''}`,
    `rules     ${name}`,
    // Nobody asks the rules about them.
    ...(person.isSuspended ? ['          the person is suspended, and is refused whatever the rules say'] : []),
  ]
  for (const { stage, decision, due, question, trace } of answers) {
    const { allow, reason, require, session } = decision
    result.push('', `step      ${stage}`)
    result.push(`decision  ${allow ? 'allowed' : `denied: ${reason ?? 'no reason given'}`}`)
    if (allow) {
      const what = due.map((requirement) => asked[requirement](question))
      result.push(`requires  ${list(require)}`, `asked     ${what.length > 0 ? what.join(', then ') : 'nothing more'}`)
      for (const [which, seconds] of Object.entries(session)) result.push(`session   ${which} at most ${seconds} s`)
    }
    if (!trace) result.push(`because   ${missing}`)
    for (const { rule, file, line } of trace ? reasonsIn(trace) : []) {
      result.push(`because   ${rule}  ${file}:${line}  ${lineOf(sources, file, line)}`)
    }
    if (trace && all) result.push('', ...explanationLines(trace))
  }
  return result
}

const lineOf = (sources: Sources | undefined, file: string, line: number): string => {
  const source = sources?.get(file.replace(/^\.?\//, ''))
  return source ? (Buffer.from(source).toString().split('\n')[line - 1]?.trim() ?? '') : ''
}
