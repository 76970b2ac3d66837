import { type Clock, toSeconds } from '../../platform/clock.ts'
import type { PolicyInput } from '../../policies/decide.ts'
import type { Route } from '../config/route.ts'
import { insufficientUserAuthentication } from '../refusals/challenges.ts'
import type { RoutedRequest, Stage } from '../request/request-context.ts'

/** What a route asks of how its user signed in. */
export type SignInDemand = Pick<Route, 'acr' | 'maxAuthAge'>

/**
 * What is missing, as a sentence for the client, or undefined when the token satisfies the route. A token that does not
 * say how or when its user signed in (an application's, one of an exchange, a personal access token's) satisfies none.
 */
export const signInLacks = (
  { acr, maxAuthAge }: SignInDemand,
  token: PolicyInput['token'],
  nowSeconds: number,
): string | undefined => {
  if (acr.length > 0 && (token?.acr === undefined || !acr.includes(token.acr))) {
    return 'A stronger sign-in is needed.'
  }
  if (maxAuthAge === undefined) return undefined
  // OIDC Core §3.1.2.1: `max_age` is the longest time allowed, so that long ago still counts.
  const isRecent = token?.auth_time !== undefined && nowSeconds - token.auth_time <= maxAuthAge / 1000
  return isRecent ? undefined : 'A more recent sign-in is needed.'
}

/**
 * RFC 9470: a route may ask for a sign-in of a kind (`acr`) and an age (`maxAuthAge`). The challenge names everything
 * that the route asks for, not only what is missing: a client that repeats the authorization request with it gets a
 * token that passes.
 */
export const createRequireSignIn =
  ({ now }: { now: Clock }): Stage<RoutedRequest> =>
  ({ route, principal }) => {
    if (route.acr.length === 0 && route.maxAuthAge === undefined) return
    const detail = signInLacks(route, principal?.input.token, toSeconds(now()))
    if (detail !== undefined) throw insufficientUserAuthentication({ ...route, detail })
  }
