import { signInLacks } from '../../gateway/authorize/step-up.ts'
import type { GatewayConfig } from '../../gateway/config/load.ts'
import { canonicalTarget, queryParameters } from '../../gateway/request/canonical-target.ts'
import { foldedTarget, matchTarget, refuseSpelling } from '../../gateway/request/match-route.ts'
import { createRouter } from '../../gateway/routing/router.ts'
import { AppError } from '../../platform/problem.ts'
import {
  type CaseQuestion,
  headersForPolicy,
  type Outcome,
  type PolicyCase,
  type ResolveCase,
} from '../../policies/authoring/cases.ts'
import { principalInput } from '../../policies/decide.ts'
import { unitsOfDeadline } from '../../policies/engine/index.ts'

/**
 * Cases meet the routes of a `gateway.yaml`, read and matched as the gateway does. A case that describes its route
 * itself keeps that.
 */
export const resolveByConfig = (config: GatewayConfig): ResolveCase => {
  const router = createRouter(config.routes)
  const { units, isolation } = config.policies
  return ({ request, token, now }: PolicyCase): CaseQuestion | { answer: Outcome } => {
    const { method, scheme, host, headers, clientIp, body } = request
    const target = unlessRefused(() => canonicalTarget(request.path))
    if (!target) return unreadable
    const { path, segments, query } = target
    const route = matchTarget(router, host, method, target)
    if (!route) return { answer: { status: 404, reason: 'not_found' } }
    if (!unlessRefused(() => refuseSpelling(route, target) ?? true)) return unreadable
    if (route.auth === 'required' && !token) return { answer: { status: 401, reason: 'token_missing' } }
    const { entrypoint, id, scopes, audience, impersonation, context, policyHeaders, insufficientScopeStatus } = route
    const claims = { iss: route.issuers[0], aud: audience[0], iat: now, exp: now + 300, ...token }
    if (route.auth === 'required' && !route.issuers.includes(String(claims.iss)))
      return { answer: { status: 401, reason: 'invalid_token' } }
    if (route.auth === 'required' && ![claims.aud].flat().some((one) => audience.includes(String(one))))
      return { answer: { status: 401, reason: 'invalid_token' } }
    const principal = route.auth === 'required' ? principalInput(claims) : undefined
    if (signInLacks(route, principal?.token, now) !== undefined)
      return { answer: { status: 401, reason: 'insufficient_user_authentication' } }
    const { policyBody } = route
    if (policyBody && body !== undefined && Buffer.byteLength(JSON.stringify(body)) > policyBody.maxBytes)
      return { answer: { status: 413, reason: 'content_too_large' } }
    return {
      entrypoint,
      insufficientScopeStatus,
      units: route.isolation === 'worker' ? unitsOfDeadline(isolation.deadline) : units,
      input: {
        version: 1,
        request: {
          id: 'case',
          method,
          scheme,
          host,
          path,
          segments,
          folded: foldedTarget(route, target),
          query: queryParameters(query),
          headers: headersForPolicy(headers, policyHeaders),
          clientIp,
          ...(policyBody && body !== undefined && { body }),
        },
        route: {
          id,
          params: Object.fromEntries(route.pattern.parameters.map(({ name, index }) => [name, segments[index]!])),
          scopes,
          audience,
          impersonation,
          context,
        },
        ...principal,
        now,
      },
    }
  }
}

const unreadable = { answer: { status: 400, reason: 'invalid_request' } }

const unlessRefused = <Result>(read: () => Result): Result | undefined => {
  try {
    return read()
  } catch (error) {
    if (error instanceof AppError) return undefined
    throw error
  }
}
