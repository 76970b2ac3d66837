import type { PolicySet } from '../../policies/decide.ts'
import type { GatewayConfig } from '../config/load.ts'
import type { Mask } from '../config/settings/logs.ts'
import { createMasks } from '../logs/mask.ts'
import { problem } from '../refusals/problems.ts'
import { createRouter } from '../routing/router.ts'
import { type AnswerOf, decisionRecord, type EndpointName, type QueryOf } from './api.ts'
import type { FoundDecisions } from './decision-ring.ts'
import type { Evaluation, EvaluationQuestion } from './evaluation.ts'
import type { Inspected } from './inspected.ts'
import { explainMatch, type Routes } from './match.ts'
import { touches } from './recorded-input.ts'
import { routesInOrder } from './routes.ts'
import { mostExplained, type Rules } from './rules.ts'
import { explainDecision } from './why.ts'

/** What was asked: the parts of the path, the query, the body, each as its schema gives it. */
export interface Asked<Name extends EndpointName> {
  query: QueryOf<Name>
  /** `:name` of the path, where it has one. */
  named: string
  body: unknown
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
}): Answers => {
  const { config, inspected, evaluation, rules } = parts

  const masks = createMasks((config.decisionLog?.mask ?? []).filter((mask) => isOfResult(mask)))
  const routes: Routes = { routes: config.routes, router: createRouter(config.routes) }

  const recordOf = async (request: string): Promise<Uint8Array> => {
    const [found] = (await inspected.decisions.find({ request }, 1)).decisions
    if (!found) throw problem('not_found', { detail: 'No decision with this id is kept.' })
    return found.bytes
  }

  /** With the rules that were asked, where that can be told. */
  const evaluated = async (policies: PolicySet, question: EvaluationQuestion) => {
    const reply = await evaluation.ask(policies, question, config.policies.units)
    const short = !('error' in reply) && reply.units <= mostExplained
    const asked = short ? await rules.explain(config.policies, policies, question) : undefined
    return { ...reply, revision: policies.revision, ...(asked && { rules: asked }) }
  }

  return {
    configuration: () => ({ file: config.file, revision: config.revision, configuration: config.shown() }),
    routes: () => ({ routes: routesInOrder(config.routes) }),
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
      const { units } = config.policies
      return explainDecision({
        record: decisionRecord.parse(JSON.parse(Buffer.from(await recordOf(named)).toString())),
        routes,
        revisions: { configuration: config.revision, policies: policies.revision },
        evaluate: (question) => evaluation.ask(policies, question, units),
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
  }
}

const isOfResult = (mask: Mask): boolean => touches(typeof mask === 'string' ? mask : mask.path, '/result')

const jsonOf = ({ decisions, more }: FoundDecisions): Buffer => {
  const items = decisions.flatMap(({ bytes }, index) => (index === 0 ? [bytes] : [comma, bytes]))
  return Buffer.concat([Buffer.from('{"decisions":['), ...items, Buffer.from(`],"more":${more}}`)])
}

const comma = Buffer.from(',')
