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
import { foldedTarget } from '../request/match-route.ts'
import { nameRecord } from '../request/name-record.ts'
import type { Exchange, Stage } from '../request/request-context.ts'

export interface AuthorizeParts {
  policies: { current(): PolicySet }
  /** Candidates that are asked the same afterwards. */
  shadow?: Shadow | undefined
  logger: Logger
  now: Clock
}

/**
 * Asks the policy of the route, on this thread or (`isolation: worker`) in one of its own. Whatever is not a clear yes is a no: 401 for a
 * missing scope, 403 for everything else, and 503 when no thread came free to decide.
 */
export const createAuthorize = ({ policies, shadow, logger, now }: AuthorizeParts): Stage => {
  const settle = (exchange: Exchange, decision: Decision): void => {
    const { id: requestId, input } = exchange
    const route = exchange.route!
    const { entrypoint, id } = route
    exchange.decision = decision
    shadow?.compare({ requestId, route: id, entrypoint, input: input!, decision })
    if (decision.allow) return
    if (decision.reason === 'policy_error') {
      logger.error({ requestId, route: id, entrypoint, reason: decision.error }, 'a policy gave no decision')
    }
    throw denial(decision, route)
  }

  return (exchange) => {
    const { entrypoint, isolation } = exchange.route!
    const input = policyInput(exchange, toSeconds(now()))
    exchange.input = input
    if (isolation === 'main') return settle(exchange, decide(policies.current(), entrypoint, input))
    return decideIsolated(policies.current(), entrypoint, input).then(
      (decision) => settle(exchange, decision),
      (cause: unknown) => {
        if (!(cause instanceof PolicyBusy)) throw cause
        throw problem('policy_unavailable', { headers: { 'retry-after': '1' }, cause })
      },
    )
  }
}

/** Denials that have a row of their own in the problem table; other reasons are the policy author's, carried beside `policy_denied`. */
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

const noHeaders: Record<string, string[]> = Object.freeze(nameRecord<string[]>())

const selectedHeaders = (flat: readonly string[], wanted: readonly string[]): Record<string, string[]> => {
  if (wanted.length === 0) return noHeaders
  const selected = nameRecord<string[]>()
  for (let index = 0; index < flat.length; index += 2) {
    const name = flat[index]!
    if (!wanted.includes(name)) continue
    const values = selected[name]
    if (values) values.push(flat[index + 1]!)
    else selected[name] = [flat[index + 1]!]
  }
  return selected
}

const policyInput = (exchange: Exchange, now: number): PolicyInput => {
  const { method, scheme, host, path, segments, query, clientIp } = exchange.request!
  const { id, scopes, audience, impersonation, context, policyHeaders } = exchange.route!
  return {
    version: 1,
    request: {
      id: exchange.id,
      method,
      scheme,
      host,
      path,
      segments,
      folded: foldedTarget(exchange.route!, exchange.request!),
      query: queryParameters(query),
      headers: selectedHeaders(exchange.headers!.forwardable, policyHeaders),
      clientIp,
    },
    route: { id, params: exchange.params!, scopes, audience, impersonation, context },
    ...exchange.principal?.input,
    now,
  }
}
