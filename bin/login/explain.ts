import { resolve } from 'node:path'
import type { AuthorizationRequest } from '../../issuer/interaction/authorization-request.ts'
import { questionOf } from '../../issuer/interaction/decide-sign-in.ts'
import { type ExplainFacts, findExplainFacts } from '../../issuer/interaction/explain-facts-store.ts'
import { nextStep } from '../../issuer/interaction/next-step.ts'
import type { PersonFacts } from '../../issuer/interaction/person-facts.ts'
import { authenticationBy, identifies, type Proof, type ProofKindName } from '../../issuer/interaction/proofs.ts'
import { isPasswordExpired } from '../../issuer/interaction/settings.ts'
import { createSignInPolicy, type SignInQuestion } from '../../issuer/interaction/sign-in-policy.ts'
import type { Step } from '../../issuer/interaction/step.ts'
import { loadConfig } from '../../platform/config.ts'
import { createDatabase, type Query } from '../../platform/database/database.ts'
import { visitEmbeddedPostgres } from '../../platform/embedded-postgres/visit.ts'
import { createLogger, type Logger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { AppError } from '../../platform/problem.ts'
import { StartupError } from '../../platform/startup-error.ts'
import { explain } from '../../policies/authoring/explain.ts'
import { loadPolicies, PolicyError, shippedPolicies } from '../../policies/decide.ts'
import { CompilerMissing, findOpa, issueLine, readSources } from '../../policies/engine/index.ts'
import { type SignInDecision, type SignInStage, signInEntrypoint, signInStages } from '../../policies/sign-in.ts'
import { parseOptions } from '../cli/options.ts'
import { settings } from '../cli/settings.ts'
import { type Answer, answerAsJson, answerLines } from './explanation.ts'

/**
 * `surrogate login explain`: asks the sign-in rules about a person and an application of the database, and shows what
 * they decide, by which rule and line, and the step that the issuer would show. Nobody signs in, nothing is written. 0
 * the rules decided, 1 they gave no decision, or there is no such person or application.
 */
export const explainCommand = async (
  args: readonly string[],
  { env = process.env, say = print }: { env?: NodeJS.ProcessEnv; say?: (line: string) => void } = {},
): Promise<number> => {
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
  const own = loadConfig(settings.login, env)
  const user = needed(values.user, '--user')
  const clientId = needed(values.client, '--client')
  const logger = createLogger({ name: 'login', level: values.json ? 'error' : own.LOG_LEVEL })
  const amr = values.amr.flatMap((names) => names.split(','))
  const facts = await withDatabase(own, logger, (query) => findExplainFacts(query, { user, clientId }))
  const { person: stored, client, settings: experience, consent } = facts
  if (!stored || !client) {
    say(stored ? `There is no application ${clientId}.` : `There is nobody whom "${user}" names.`)
    return 1
  }

  const now = momentOf(values.at)
  const person = withFactors(
    { ...stored, isPasswordExpired: isPasswordExpired(experience, stored, now) },
    values.factor,
  )
  const proofs = proofsOf(amr, person.id)
  const session = authenticationBy(proofs)
  const proofsAt = (stage: SignInStage) => (stage === 'mfa' || stage === 'finish' ? proofs : [])
  const known = { client, settings: experience, person, ip: values.ip, country: values.country, now }
  const told = { isDeviceKnown: values['known-device'], failures: wholeNumber(values.failures, '--failures') }
  const questionAt = (stage: SignInStage): SignInQuestion =>
    questionOf({
      ...{ ...known, stage, facts: { ...told, roles: stored.roles, organizations: stored.organizations } },
      userId: stage === 'prove' ? undefined : person.id,
      proofs: proofsAt(stage),
      session: stage === 'session' ? session : undefined,
    })
  const stepAfter = (stage: SignInStage, decision: SignInDecision): Step => {
    // Before the first proof only the test for machines can be due.
    if (stage === 'prove' && decision.allow && decision.require.includes('captcha')) {
      return { step: 'captcha', reasons: ['captcha'], options: {} }
    }
    return nextStep({
      ...{ event: 'SignIn', request: plainRequest(client), client, settings: experience },
      ...{ proofs: proofsAt(stage), staged: {}, decision, consent, state: {} },
      ...(stage === 'session'
        ? { session: { ...session, id: '', userId: person.id, age: 0 }, person: undefined }
        : { session: undefined, person }),
    })
  }

  try {
    const asked = await openRules(values.path ?? own.POLICY_PATH, own.OPA_BIN, logger)
    const answers: Answer[] = []
    for (const stage of stagesOf(values.stage, amr)) {
      const question = questionAt(stage)
      const decision = asked.policy.decideSignIn(question)
      const trace = asked.trace && (await asked.trace(question))
      answers.push({ stage, question, decision, trace, next: stepAfter(stage, decision) })
    }
    if (values.json) say(JSON.stringify({ rules: asked.name, answers: answers.map(answerAsJson) }, null, 2))
    else for (const line of answerLines({ person: stored, client, asked, answers, all: values.rules })) say(line)
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

const print = (line: string) => void process.stdout.write(`${line}\n`)

const usage = 'See surrogate login --help and docs/sign-in-rules.md.'

const needed = (value: string | undefined, name: string): string => {
  if (value === undefined || value === '') throw new StartupError(`${name} is missing.`, { hint: usage })
  return value
}

const wholeNumber = (text: string, name: string): number => {
  if (!/^\d{1,9}$/.test(text)) throw new StartupError(`${name} must be a number.`, { hint: usage })
  return Number(text)
}

const momentOf = (text: string | undefined): Date => {
  const moment = text === undefined ? Date.now() : Date.parse(text)
  if (Number.isNaN(moment)) {
    throw new StartupError('--at is no time.', { hint: 'Such as 2026-01-07T13:00:00+01:00.' })
  }
  return new Date(moment)
}

const stagesOf = (name: string | undefined, amr: readonly string[]): readonly SignInStage[] => {
  if (name === undefined) return amr.length === 0 ? ['prove'] : ['mfa', 'finish']
  const stage = signInStages.find((one) => one === name)
  if (!stage) throw new StartupError(`There is no stage "${name}".`, { hint: `Use one of ${signInStages.join(', ')}.` })
  return [stage]
}

/** Kinds of proof by their names of RFC 8176. One by itself is of who somebody is. */
const methods: Readonly<Record<string, { first: ProofKindName; second: ProofKindName }>> = {
  pwd: { first: 'password', second: 'password' },
  otp: { first: 'email_code', second: 'totp' },
  sms: { first: 'phone_code', second: 'phone_code' },
  pop: { first: 'passkey', second: 'passkey' },
  hwk: { first: 'passkey', second: 'passkey' },
  swk: { first: 'passkey', second: 'passkey' },
}

/** What was proven, the first of it who it is. */
const proofsOf = (amr: readonly string[], userId: string): Proof[] => {
  const used = amr.flatMap((name) => (Object.hasOwn(methods, name) ? [methods[name]!] : []))
  return used.map(({ first, second }, index): Proof => {
    const purpose = index === 0 && identifies({ kind: first, purpose: 'sign_in' }) ? 'sign_in' : 'mfa'
    return { id: String(index), kind: purpose === 'sign_in' ? first : second, purpose, userId, data: {} }
  })
}

/** Factors that the person is to have besides, by their kinds of proof. */
const added: Readonly<Record<string, Partial<PersonFacts>>> = {
  totp: { hasTotp: true },
  passkey: { passkeys: 1 },
  email_code: { hasEmail: true },
  phone_code: { hasPhone: true },
  backup_code: { backupCodes: 10 },
}

const withFactors = (person: PersonFacts, kinds: readonly string[]): PersonFacts => {
  const unknown = kinds.find((kind) => !Object.hasOwn(added, kind))
  if (unknown !== undefined) {
    const hint = `Use one of ${Object.keys(added).join(', ')}.`
    throw new StartupError(`There is no factor "${unknown}".`, { hint })
  }
  return Object.assign({}, person, ...kinds.map((kind) => added[kind]))
}

/** It asks for nothing in particular. */
const plainRequest = ({ id, redirectUris: [redirectUri = ''] }: ExplainFacts['client']): AuthorizationRequest => ({
  ...{ clientId: id, redirectUri, responseMode: 'query', scopes: ['openid'], resourceScopes: {}, resources: [] },
  ...{ prompts: [], uiLocales: [], acrValues: [], wantsOfflineAccess: false },
})

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
