import { type Clock, toSeconds } from '../../platform/clock.ts'
import { uuidv7 } from '../../platform/ids.ts'
import { AppError } from '../../platform/problem.ts'
import { decisionOf, PolicyError, type PolicySet } from '../../policies/decide.ts'
import { policyInput } from '../authorize/authorize.ts'
import { signInLacks } from '../authorize/step-up.ts'
import type { GatewayConfig } from '../config/load.ts'
import type { Route } from '../config/route.ts'
import { problem } from '../refusals/problems.ts'
import { canonicalTarget } from '../request/canonical-target.ts'
import { type Principal, principalOf } from '../request/principal.ts'
import type { AnswerOf } from './api.ts'
import type { Evaluation, EvaluationQuestion } from './evaluation.ts'
import { findRoute, type Routes } from './match.ts'
import type { AccessRequest } from './policy-answers.ts'
import { boundTo } from './recorded-input.ts'
import { lineOf } from './rule-line.ts'
import { mostExplained } from './rules.ts'

type Row = AnswerOf<'access'>['answers'][number]

export interface AccessParts {
  config: GatewayConfig
  routes: Routes
  policies: PolicySet
  evaluation: Evaluation
  /** The rules that were asked; undefined where that cannot be told. */
  explain(question: EvaluationQuestion): Promise<AnswerOf<'evaluate'>['rules']>
  now: Clock
}

/** Of routes × methods. */
const mostRows = 1_000
/** Lines are told when there are no more rows: the compiler is asked for each. */
const mostLines = 8
const usualMethods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** A request that would be made, and what its policy would be asked; `refused`: it would not come that far. */
type Case = { row: Pick<Row, 'route' | 'method' | 'host' | 'path' | 'token' | 'without'>; route: Route } & (
  | { question: EvaluationQuestion }
  | { refused: Pick<Row, 'status' | 'reason'> }
)

/**
 * What somebody with such tokens may do: for each route and method the decision of the policies in force, with the
 * input that the gateway itself would make. Nothing is forwarded, and no limit counts it. Throws `AppError` 400 for
 * claims that no verified token has.
 */
export const previewAccess = async (parts: AccessParts, asked: AccessRequest): Promise<AnswerOf<'access'>> => {
  const { config, policies, evaluation, explain, now } = parts
  const nowSeconds = toSeconds(now())
  const tokens = asked.tokens.map((claims, index) => principalFor(claims, index, nowSeconds))
  const wanted = asked.routes && new Set(asked.routes)
  const routes = config.routes.filter(({ id }) => !wanted || wanted.has(id))
  const pairs = routes.flatMap((route) => methodsOf(route, asked.methods).map((method) => ({ route, method })))
  const cases = pairs
    .slice(0, mostRows)
    .map(({ route, method }) => caseOf(parts, { route, method, path: asked.paths[route.id], tokens, nowSeconds }))
  const questions = cases.flatMap((one) => ('question' in one ? [one.question] : []))
  const replies = questions.length === 0 ? [] : await evaluation.askEach(policies, questions, config.policies.units)
  const answers: Row[] = []
  let next = 0
  for (const one of cases) {
    if ('refused' in one) {
      answers.push({ ...one.row, allow: false, ...one.refused })
      continue
    }
    const reply = replies[next++]
    // Out of time: told as `more`.
    if (!reply) continue
    const decided = rowOf(one, 'result' in reply ? reply.result : undefined)
    const isTold = cases.length <= mostLines && reply.units <= mostExplained
    const line = isTold ? lineOf(await explain(one.question), decided.allow) : undefined
    answers.push({ ...decided, ...(line && { line }) })
  }
  return { revision: policies.revision, answers, more: answers.length < pairs.length }
}

const principalFor = (claims: AccessRequest['tokens'][number], index: number, now: number): Principal => {
  try {
    return principalOf({ iat: now, exp: now + 3_600, ...claims } as never)
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    throw problem('invalid_request', { detail: `tokens.${index}: ${error.message}.` })
  }
}

const methodsOf = (route: Route, wanted: readonly string[] = usualMethods): string[] => {
  if (route.methods.length === 0) return [...new Set(wanted)]
  if (wanted === usualMethods) return [...route.methods]
  return route.methods.filter((method) => wanted.includes(method))
}

interface Wanted {
  route: Route
  method: string
  path: string | undefined
  tokens: readonly Principal[]
  nowSeconds: number
}

const caseOf = ({ routes }: AccessParts, { route, method, path: given, tokens, nowSeconds }: Wanted): Case => {
  const host = route.hosts[0] ?? 'localhost'
  const path = given ?? samplePath(routes, route, { method, host })
  const token = route.auth === 'none' ? -1 : tokens.findIndex((one) => isFor(route, one))
  const principal = tokens[token]
  const row = { route: route.id, method, host, path, ...(principal && { token }), without: withoutOf(route, method) }
  const refuse = (status: number, reason: string): Case => ({ row, route, refused: { status, reason } })
  const found = findRoute(routes, () => ({ method, host, target: canonicalTarget(path) }))
  if (found.route !== route || found.refused !== undefined)
    return refuse(found.refused === undefined ? 404 : 400, 'not_this_route')
  if (route.auth !== 'none') {
    const refused = tokenLacks(route, principal, nowSeconds)
    if (refused) return refuse(...refused)
  }
  try {
    const { segments, ...target } = canonicalTarget(path)
    const request = { ...target, segments, method, host, scheme: 'https' as const, clientIp: '127.0.0.1' }
    const common = { id: uuidv7(), route, params: found.params ?? {}, principal, tls: undefined }
    const input = policyInput({ ...common, request, headers: { forwardable: [] } }, nowSeconds)
    return { row, route, question: { entrypoint: route.entrypoint, input } }
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return refuse(error.status, error.code)
  }
}

const samples = ['1', 'x', 'sample', '0-0']

/** A path that this route takes: with other samples for its parameters where a more exact one would take it. */
const samplePath = (routes: Routes, route: Route, line: { method: string; host: string }): string => {
  const { pattern } = route
  const paths = samples.map((sample) => {
    const segments = pattern.segments.map((literal) => (literal === null ? sample : encodeURIComponent(literal)))
    return `/${[...segments, ...(pattern.rest ? [sample] : [])].join('/')}`
  })
  const isTaken = (path: string) =>
    findRoute(routes, () => ({ ...line, target: canonicalTarget(path) })).route === route
  return paths.find(isTaken) ?? paths[0]!
}

const isFor = (route: Route, { claims, audience }: Principal): boolean =>
  route.issuers.includes(claims.iss) && audience.some((one) => route.audience.includes(one))

/** In the order of the pipeline. */
const tokenLacks = (
  route: Route,
  principal: Principal | undefined,
  now: number,
): [status: number, reason: string] | undefined => {
  if (!principal) return [401, 'token_missing']
  if (principal.claims.exp <= now) return [401, 'invalid_token']
  const bound = boundTo(principal.claims as never)
  if (route.dpop === undefined ? bound === 'key' : route.dpop === 'required' && bound !== 'key') {
    return [401, 'invalid_token']
  }
  if (signInLacks(route, principal.input.token, now) !== undefined) return [401, 'insufficient_user_authentication']
  return undefined
}

const withoutOf = (route: Route, method: string): string[] => [
  ...(route.policyBody && !['GET', 'HEAD'].includes(method) ? ['request.body'] : []),
  ...(route.policyHeaders.length > 0 ? ['request.headers'] : []),
]

const rowOf = ({ row, route, question }: Case & { question: EvaluationQuestion }, result: unknown): Row => {
  const decision = decisionOf(result)
  if (decision.allow) return { ...row, allow: true, status: 200 }
  const { reason, scope } = decision
  const status = reason === 'insufficient_scope' ? route.insufficientScopeStatus : 403
  if (reason !== 'insufficient_scope') return { ...row, allow: false, status, reason }
  const held = (question.input as { token?: { scopes: string[] } }).token?.scopes ?? []
  const requiredScopes = [...new Set([...(scope ?? []), ...route.scopes])].filter((one) => !held.includes(one))
  return { ...row, allow: false, status, reason, requiredScopes }
}
