import type { Clock } from '../../platform/clock.ts'
import type { Logger } from '../../platform/logger.ts'
import type { PolicySet } from '../../policies/decide.ts'
import { issueLine } from '../../policies/engine/index.ts'
import { largestInput } from '../config/largest-input.ts'
import type { GatewayConfig } from '../config/load.ts'
import type { Mask } from '../config/settings/logs.ts'
import { createMasks } from '../logs/mask.ts'
import { problem } from '../refusals/problems.ts'
import { createRouter } from '../routing/router.ts'
import { previewAccess } from './access-preview.ts'
import type { AnswerOf, EndpointName, QueryOf } from './api.ts'
import { decisionRecord } from './decision-answers.ts'
import type { FoundDecisions } from './decision-ring.ts'
import type { Evaluation, EvaluationQuestion } from './evaluation.ts'
import type { Inspected } from './inspected.ts'
import { explainMatch, type Routes } from './match.ts'
import type { AccessRequest, SaveRequest, TryAnswer, TryRequest } from './policy-answers.ts'
import { isFolder, tellPolicyFiles } from './policy-files.ts'
import { touches } from './recorded-input.ts'
import { pageOfRoutes } from './routes.ts'
import { mostExplained, type Rules } from './rules.ts'
import { saveRules } from './save-rules.ts'
import type { Trial } from './trial.ts'
import { explainDecision } from './why.ts'

/** What was asked: the parts of the path, the query, the body, each as its schema gives it. */
export interface Asked<Name extends EndpointName> {
  query: QueryOf<Name>
  /** `:name` of the path, where it has one. */
  named: string
  body: unknown
  /** The subject or client of the token. */
  by: string
}

/** JSON as text, or what becomes JSON. */
type Answer<Name extends EndpointName> = AnswerOf<Name> | Buffer

export type Answers = {
  [Name in Exclude<EndpointName, 'stream'>]: (asked: Asked<Name>) => Answer<Name> | Promise<Answer<Name>>
}

/** The answers of every endpoint but the stream, by one configuration. */
export const createAnswers = (parts: {
  config: GatewayConfig
  inspected: Inspected
  evaluation: Evaluation
  rules: Rules
  trial: Trial
  opaBin: string | undefined
  logger: Logger
  now: Clock
}): Answers => {
  const { config, inspected, evaluation, rules, trial, opaBin, logger, now } = parts

  const resultMasks = (config.decisionLog?.mask ?? []).filter((mask) => isOfResult(mask))
  const masks = createMasks(resultMasks)
  const routes: Routes = { routes: config.routes, router: createRouter(config.routes) }
  const { units } = config.policies
  const limits = { units, input: largestInput(config) }

  const recordOf = async (request: string): Promise<Uint8Array> => {
    const [found] = (await inspected.decisions.find({ request }, 1)).decisions
    if (!found) throw problem('not_found', { detail: 'No decision with this id is kept.' })
    return found.bytes
  }

  const recordsOf = async (limit: number): Promise<Uint8Array[]> =>
    (await inspected.decisions.find({}, limit)).decisions.map(({ bytes }) => bytes)

  /** With the rules that were asked, where that can be told. */
  const evaluated = async (policies: PolicySet, question: EvaluationQuestion) => {
    const reply = await evaluation.ask(policies, question, limits)
    const short = !('error' in reply) && reply.units <= mostExplained
    const asked = short ? await rules.explain(config.policies, policies, question) : undefined
    return { ...reply, revision: policies.revision, ...(asked && { rules: asked }) }
  }

  return {
    configuration: () => ({ file: config.file, revision: config.revision, configuration: config.shown() }),
    routes: ({ query }) => pageOfRoutes(config.routes, query),
    upstreams: () => inspected.upstreams(),
    issuers: async () => ({ issuers: await inspected.issuers() }),
    session: ({ named }) => inspected.session(named),
    match: ({ query: { method, url } }) => explainMatch(routes, method, url),
    async decisions({ query: { limit, ...filter } }) {
      return jsonOf(await inspected.decisions.find(filter, limit))
    },
    decision: async ({ named }) => Buffer.from(await recordOf(named)),
    async why({ named }) {
      const policies = inspected.policies()
      return explainDecision({
        record: decisionRecord.parse(JSON.parse(Buffer.from(await recordOf(named)).toString())),
        routes,
        revisions: { configuration: config.revision, policies: policies.revision },
        evaluate: (question) => evaluation.ask(policies, question, limits),
        units,
        explain: async (question) => (await evaluated(policies, question)).rules,
      })
    },
    shadow: async () => ({
      configured: config.policies.shadow !== undefined,
      differences: await inspected.differences(),
    }),
    async evaluate({ body }) {
      const { entrypoint = config.policies.entrypoint, input } = body as Partial<EvaluationQuestion>
      const policies = inspected.policies()
      const answer = await evaluated(policies, { entrypoint, input })
      // The result is what a decision log would have.
      return { ...answer, ...masks(answer) } as AnswerOf<'evaluate'>
    },
    tests: () => rules.test(config.policies),
    policies: () => tellPolicyFiles({ config, policies: inspected.policies(), opaBin }),
    async try({ body }) {
      const { files, entrypoint = config.policies.entrypoint, decisions, ...asked } = body as TryRequest
      await requireRules(config)
      return trial.alone(async (run) =>
        run({
          ...{ config, files, policies: inspected.policies(), masks: resultMasks },
          question: asked.input === undefined ? undefined : { entrypoint, input: asked.input },
          records: decisions === 0 ? undefined : await recordsOf(decisions),
        }),
      )
    },
    async save({ body, by }) {
      const { files } = body as SaveRequest
      const { canSave, cannotSave } = await tellPolicyFiles({ config, policies: inspected.policies(), opaBin })
      if (!canSave) throw problem('not_found', { detail: cannotSave })
      const texts = Object.fromEntries(Object.entries(files).map(([path, { text }]) => [path, text]))
      const saved = await trial.alone((run) =>
        saveRules(config.policies.path, files, async () => {
          const wanted = { config, files: texts, policies: inspected.policies(), masks: resultMasks }
          requireGood(JSON.parse((await run(wanted)).toString()) as TryAnswer)
        }),
      )
      logger.info({ by, files: saved }, 'policies saved')
      return { files: saved }
    },
    access: ({ body }) => {
      const policies = inspected.policies()
      const explain = (question: EvaluationQuestion) => rules.explain(config.policies, policies, question)
      return previewAccess({ config, routes, policies, evaluation, limits, explain, now }, body as AccessRequest)
    },
  }
}

/** Throws `AppError` 404 where there are none that candidates could stand beside. */
const requireRules = async ({ policies: { path, verify } }: GatewayConfig): Promise<void> => {
  if (!verify && (await isFolder(path))) return
  throw problem('not_found', { detail: 'The policies are no folder of rules that others could be tried in.' })
}

/** Of the first mistakes; the rest is told by a trial. */
const longestDetail = 1_000

/** Throws `AppError` 422. */
const requireGood = ({ issues, missing, tests }: TryAnswer): void => {
  const refuse = (detail: string) => problem('rules_refused', { detail: detail.slice(0, longestDetail) })
  if (issues.length > 0) throw refuse(issues.map(issueLine).join('; '))
  if (missing.length > 0) throw refuse(`Routes need these entrypoints: ${missing.join(', ')}.`)
  if (!tests?.passed) throw refuse(tests?.report ?? 'The tests cannot be run.')
}

const isOfResult = (mask: Mask): boolean => touches(typeof mask === 'string' ? mask : mask.path, '/result')

const jsonOf = ({ decisions, more }: FoundDecisions): Buffer => {
  const items = decisions.flatMap(({ bytes }, index) => (index === 0 ? [bytes] : [comma, bytes]))
  return Buffer.concat([Buffer.from('{"decisions":['), ...items, Buffer.from(`],"more":${more}}`)])
}

const comma = Buffer.from(',')
