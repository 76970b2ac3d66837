import { canonicalTarget, queryParameters } from '../../gateway/canonical-target.ts'
import type { GatewayConfig } from '../../gateway/config.ts'
import { createRouter } from '../../gateway/routes.ts'
import { AppError } from '../../platform/problem.ts'
import {
  type CaseQuestion,
  headersForPolicy,
  type Outcome,
  type PolicyCase,
  type ResolveCase,
} from '../../policies/cases.ts'
import { principalInput } from '../../policies/decide.ts'

/** Cases meet the routes of a `gateway.yaml`, read and matched as the gateway does. A case that describes its route itself keeps that. */
export const resolveByConfig = (config: GatewayConfig): ResolveCase => {
  const router = createRouter(config.routes)
  return ({ request, token, now }: PolicyCase): CaseQuestion | { answer: Outcome } => {
    const target = readTarget(request.path)
    if (!target) return { answer: { status: 400, reason: 'invalid_request' } }
    const { path, segments, query } = target
    const { method, scheme, host, headers, clientIp } = request
    const route = router.match(host, method, segments)
    if (!route) return { answer: { status: 404, reason: 'not_found' } }
    if (route.auth === 'required' && !token) return { answer: { status: 401, reason: 'token_missing' } }
    const { entrypoint, id, scopes, audience, impersonation, context, policyHeaders, insufficientScopeStatus } = route
    const claims = { iss: route.issuers[0], aud: audience[0], iat: now, exp: now + 300, ...token }
    if (route.auth === 'required' && !route.issuers.includes(String(claims.iss)))
      return { answer: { status: 401, reason: 'invalid_token' } }
    if (route.auth === 'required' && ![claims.aud].flat().some((one) => audience.includes(String(one))))
      return { answer: { status: 401, reason: 'invalid_token' } }
    return {
      entrypoint,
      insufficientScopeStatus,
      input: {
        version: 1,
        request: {
          id: 'case',
          method,
          scheme,
          host,
          path,
          segments,
          query: queryParameters(query),
          headers: headersForPolicy(headers, policyHeaders),
          clientIp,
        },
        route: {
          id,
          params: Object.fromEntries(route.pattern.parameters.map(({ name, index }) => [name, segments[index]!])),
          scopes,
          audience,
          impersonation,
          context,
        },
        ...(route.auth === 'required' && principalInput(claims)),
        now,
      },
    }
  }
}

const readTarget = (path: string) => {
  try {
    return canonicalTarget(path)
  } catch (error) {
    if (error instanceof AppError) return undefined
    throw error
  }
}
