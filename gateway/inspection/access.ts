import { AppError } from '../../platform/problem.ts'
import { type AuthenticateParts, createAuthenticate } from '../caller/authenticate.ts'
import { createCheckRevoked, type Revocations } from '../caller/revocations.ts'
import { createVerifiedTokenCache } from '../caller/verified-token-cache.ts'
import type { Route } from '../config/route.ts'
import { insufficientScope, invalidToken } from '../refusals/challenges.ts'
import { problem } from '../refusals/problems.ts'
import type { ReadRequest, RoutedRequest } from '../request/request-context.ts'
import type { InspectionEndpoint } from './api.ts'

/** Who may inspect, by one configuration. */
export interface Access {
  /** Throws `AppError`: 401, 403, 503. */
  check(context: ReadRequest, scope: InspectionEndpoint['scope'] | undefined): Promise<void>
  /** Why a request that was let in may not go on; undefined: it may. */
  endOf(
    context: ReadRequest,
    scope: InspectionEndpoint['scope'],
  ): Promise<'expired' | 'revoked' | 'refused' | undefined>
  /** Runs when revocations have arrived. Returns what ends that. */
  onRevoked(listener: () => void): () => void
}

/** @param route says whose tokens are taken, and for which audience. */
export const createAccess = (
  options: Omit<AuthenticateParts, 'cache'> & { revocations: readonly Revocations[]; route: Route },
): Access => {
  const { revocations, route, now } = options
  const authenticate = createAuthenticate({ ...options, cache: createVerifiedTokenCache() })
  const checkRevoked = createCheckRevoked({ revocations })

  const check: Access['check'] = async (context, scope) => {
    const routed: RoutedRequest = Object.assign(context, { route, params: {}, principal: undefined })
    await authenticate(routed)
    await checkRevoked(routed)
    const { principal } = context
    // RFC 7800: the gateway's route stages prove possession; here nobody does, so such a token is only half of what it
    // takes.
    if (principal?.claims['cnf'] !== undefined) throw invalidToken('The token is bound to a key.')
    if (principal?.input.actor || principal?.input.token?.impersonation) throw problem('impersonation_denied')
    if (scope !== undefined && !principal?.input.token?.scopes.includes(scope)) {
      throw insufficientScope({ scopes: [scope], status: 403 })
    }
  }

  return {
    check,
    async endOf(context, scope) {
      const { principal } = context
      if (principal && now().getTime() >= principal.claims.exp * 1000) return 'expired'
      try {
        await check(context, scope)
        return undefined
      } catch (error) {
        context.principal = principal
        return error instanceof AppError && error.detail === 'The token was revoked.' ? 'revoked' : 'refused'
      }
    },
    onRevoked(listener) {
      const removes = revocations.map((one) => one.onUpdate(listener))
      return () => {
        for (const remove of removes) remove()
      }
    },
  }
}
