import { type Clock, toSeconds } from '../../platform/clock.ts'
import type { Logger } from '../../platform/logger.ts'
import type { AppError } from '../../platform/problem.ts'
import {
  type Decision,
  decide,
  decideIsolated,
  PolicyBusy,
  type PolicyInput,
  type PolicySet,
} from '../../policies/decide.ts'
import type { Shadow } from '../../policies/shadow.ts'
import type { Route } from '../config/route.ts'
import { insufficientScope } from '../refusals/challenges.ts'
import { type ProblemCode, problem } from '../refusals/problems.ts'
import { queryParameters } from '../request/canonical-target.ts'
import { eachField, type FieldList } from '../request/field-list.ts'
import { jsonBody } from '../request/json-body.ts'
import { foldedTarget } from '../request/match-route.ts'
import { nameRecord } from '../request/name-record.ts'
import type { RoutedRequest, Stage } from '../request/request-context.ts'
import { traceFields } from '../request/request-trace.ts'

export interface AuthorizeParts {
  policies: { current(): PolicySet }
  /** Policies that are asked the same afterwards and not enforced. */
  shadow?: Shadow | undefined
  logger: Logger
  now: Clock
}

/**
 * Asks the policy of the route, on this thread or (`isolation: worker`) in one of its own. Whatever is not a clear yes
 * is a no: 401 for a missing scope, 403 for everything else, and 503 when no thread came free to decide.
 */
export const createAuthorize = ({ policies, shadow, logger, now }: AuthorizeParts): Stage<RoutedRequest> => {
  const apply = (context: RoutedRequest, input: PolicyInput, decision: Decision): void => {
    const { id: requestId, trace, route, body } = context
    const { entrypoint, id } = route
    context.decision = decision
    shadow?.compare({ requestId, trace, route: id, entrypoint, input, decision, bodyLength: body?.length })
    if (decision.allow) return
    if (decision.reason === 'policy_error') {
      const fields = { requestId, ...traceFields(context), route: id, entrypoint, reason: decision.error }
      logger.error(fields, 'a policy gave no decision')
    }
    throw denial(decision, route)
  }

  return (context) => {
    const { entrypoint, isolation } = context.route
    const bodiless = policyInput(context, toSeconds(now()))
    const input = context.body && context.route.policyBody ? withBody(bodiless, context.body) : bodiless
    // What is kept until the answer is out holds the bytes of the body only.
    context.input = bodiless
    if (isolation === 'main') return apply(context, input, decide(policies.current(), entrypoint, input))
    return decideIsolated(policies.current(), entrypoint, input).then(
      (decision) => apply(context, input, decision),
      (cause: unknown) => {
        if (!(cause instanceof PolicyBusy)) throw cause
        throw problem('policy_unavailable', { headers: { 'retry-after': '1' }, cause })
      },
    )
  }
}

/**
 * Denials that have a row of their own in the problem table; other reasons are the policy author's, carried beside
 * `policy_denied`.
 */
const ownCodes: ReadonlySet<string> = new Set<ProblemCode>(['impersonation_denied', 'policy_error'])

const denial = (
  { reason, detail, scope }: { reason: string; detail?: string; scope?: string[] },
  { scopes, insufficientScopeStatus: status }: Route,
): AppError => {
  if (reason === 'insufficient_scope') return insufficientScope({ scopes: scope ?? scopes, status, detail })
  return problem(ownCodes.has(reason) ? (reason as ProblemCode) : 'policy_denied', {
    ...(detail === undefined ? {} : { detail }),
    data: { reason },
  })
}

/** Throws 400 for a body that can be read in several ways. One of no bytes is none. */
const withBody = (input: PolicyInput, body: Buffer): PolicyInput =>
  body.length === 0 ? input : { ...input, request: { ...input.request, body: jsonBody(body) } }

const noHeaders: Record<string, string[]> = Object.freeze(nameRecord<string[]>())

const selectedHeaders = (fields: FieldList, wanted: readonly string[]): Record<string, string[]> => {
  if (wanted.length === 0) return noHeaders
  const selected = nameRecord<string[]>()
  eachField(fields, (name, value) => {
    if (!wanted.includes(name)) return
    const values = selected[name]
    if (values) values.push(value)
    else selected[name] = [value]
  })
  return selected
}

/** What an input is made of. */
export interface AskedRequest extends Pick<RoutedRequest, 'id' | 'route' | 'params' | 'principal' | 'tls'> {
  request: Omit<RoutedRequest['request'], 'accessToken' | 'peer' | 'bodyLength' | 'forwardedFor'>
  headers: Pick<RoutedRequest['headers'], 'forwardable'>
}

/** Without the body. `now` in seconds. */
export const policyInput = (context: AskedRequest, now: number): PolicyInput => {
  const { id, request, headers, route, params, principal, tls } = context
  const { method, scheme, host, path, segments, query, clientIp } = request
  const { scopes, audience, impersonation } = route
  const input: PolicyInput = {
    version: 1,
    request: {
      id,
      method,
      scheme,
      host,
      path,
      segments,
      folded: foldedTarget(route, request),
      query: queryParameters(query),
      headers: selectedHeaders(headers.forwardable, route.policyHeaders),
      clientIp,
    },
    route: { id: route.id, params, scopes, audience, impersonation, context: route.context },
    ...principal?.input,
    now,
  }
  if (tls) input.tls = tls
  return input
}
