import { decisionOf } from '../../policies/decide.ts'
import { canonicalTarget, refuse } from '../request/canonical-target.ts'
import type { AnswerOf } from './api.ts'
import type { DecisionRecord, Why } from './decision-answers.ts'
import { type FoundRoute, findRoute, type Routes, toldMiss } from './match.ts'
import { hiddenOf, type RecordedInput, readInput, tokenFacts, touches } from './recorded-input.ts'
import { isDecision, missingScopes, readResult, refusalOf } from './refusal.ts'
import { type Evaluate, findRemedies } from './remedies.ts'

export interface WhyParts {
  record: DecisionRecord
  routes: Routes
  /** In force. */
  revisions: { configuration: string; policies: string }
  evaluate: Evaluate
  /** Of one evaluation. */
  units: number
  /** Undefined where no compiler is at hand. */
  explain(question: { entrypoint: string; input: unknown }): Promise<AnswerOf<'evaluate'>['rules']>
}

/**
 * Why a request ended as it did, from the record of its decision: never more than the record may tell. Everything that
 * "would have allowed" it was asked of the policies in force.
 */
export const explainDecision = async (parts: WhyParts): Promise<Why> => {
  const { record, routes } = parts
  const input = readInput(record)
  const { method, host, path } = input.request ?? {}
  const found: FoundRoute = path === undefined ? { misses: [] } : findRoute(routes, () => requestOf(input))
  const refusal = refusalOf(record, input)
  // The interpreter takes longest; second evaluations need not wait for it.
  const [rules, asked] = await Promise.all([
    rulesOf(parts, input),
    isDecision(refusal)
      ? askAgain(parts, input, found)
      : { wouldAllow: [], notes: refusal === undefined ? [] : [notAsked(refusal.stage, found)] },
  ])
  const token = tokenFacts(input)
  return {
    request: record.decision_id,
    timestamp: record.timestamp,
    ...{ verdict: record.verdict, status: record.status, method, host, path },
    ...(record.route !== undefined && { route: record.route }),
    nearMisses: found.misses.map(toldMiss),
    ...(token && { token }),
    ...(refusal && { refusal }),
    ...(rules && { rules }),
    wouldAllow: asked.wouldAllow,
    notes: [...changedSince(parts, found), ...asked.notes],
  }
}

const requestOf = ({ request }: RecordedInput) => {
  const { method, host, path } = request ?? {}
  if (method === undefined || host === undefined || path === undefined) throw refuse('The record lacks the request.')
  return { method, host, target: canonicalTarget(path) }
}

const notAsked = (stage: string, { route }: FoundRoute): string => {
  if (stage === 'route' && !route)
    return 'No token was looked at and no policy was asked, since no route takes the request.'
  if (stage === 'upstream') return 'The policy allowed the request; it failed afterwards.'
  return 'No policy was asked, so nothing could be tried.'
}

const changedSince = ({ record, revisions }: WhyParts, { route }: FoundRoute): string[] => {
  const notes: string[] = []
  if (record.labels['config'] !== undefined && record.labels['config'] !== revisions.configuration) {
    const now = route?.id === record.route ? '' : ` Now ${route ? `the route ${route.id}` : 'no route'} takes it.`
    notes.push(`The configuration has changed since.${now}`)
  }
  const then = record.bundles['policies']?.revision
  if (then !== undefined && then !== revisions.policies)
    notes.push('The policies have changed since; those in force were asked.')
  return notes
}

/** The input as recorded first: when that ends otherwise now, changes of it tell nothing. */
const askAgain = async (
  parts: WhyParts,
  input: RecordedInput,
  { misses }: FoundRoute,
): Promise<Pick<Why, 'wouldAllow' | 'notes'>> => {
  const { record, routes, evaluate, units } = parts
  const hidden = hiddenOf(record)
  const entrypoint = record.path
  if (entrypoint === undefined || input.version === undefined) {
    return { wouldAllow: [], notes: [`Nothing could be tried: the record lacks ${hidden.join(', ') || 'its input'}.`] }
  }
  const reply = await evaluate({ entrypoint, input: record.input })
  const again = decisionOf('result' in reply ? reply.result : undefined)
  const then = readResult(record).reason
  const isReasonHidden = hiddenOf(record, '/result').some((pointer) => touches(pointer, '/result/reason'))
  if (again.allow || (!isReasonHidden && again.reason !== then)) {
    const because = hidden.length > 0 ? `the record lacks ${hidden.join(', ')}` : 'rules, their data or the time differ'
    const now = again.allow ? 'allowed' : `denied, ${again.reason}`
    return { wouldAllow: [], notes: [`Asked again, the same request is ${now}: ${because}. So nothing was tried.`] }
  }
  const missing = missingScopes(input, readResult(record))
  const common = { entrypoint, input, missing, misses, routes, hidden, evaluate, units }
  const { remedies, notes } = await findRemedies(common)
  const without = `Tried without ${hidden.join(', ')}, which the record lacks: a rule that reads it may say otherwise.`
  return { wouldAllow: remedies, notes: [...notes, ...(hidden.length > 0 && remedies.length > 0 ? [without] : [])] }
}

/** Of every request that the policy was asked about, also of allowed ones. */
const rulesOf = async ({ record, explain }: WhyParts, { version }: RecordedInput) => {
  if (version === undefined || record.path === undefined) return undefined
  return explain({ entrypoint: record.path, input: record.input })
}
