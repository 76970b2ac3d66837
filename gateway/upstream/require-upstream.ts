import type { Route } from '../config/route.ts'
import { problem } from '../refusals/problems.ts'
import type { DecidedRequest, Stage } from '../request/request-context.ts'
import type { Upstream } from './upstream.ts'

/** By name, as routes name them. */
export type Upstreams = ReadonlyMap<string, Upstream>

/**
 * The upstream of a route. A route without one is for forward-auth only: for the proxy there is none (404), and no less
 * exact route takes its place.
 */
export const upstreamOf = (upstreams: Upstreams, { upstream }: Route): Upstream => {
  const found = upstreams.get(upstream)
  if (!found) throw problem('not_found')
  return found
}

/** Before anything is done for an upstream: whether the route has one. */
export const createRequireUpstream =
  ({ upstreams }: { upstreams: Upstreams }): Stage<DecidedRequest> =>
  ({ route }) =>
    void upstreamOf(upstreams, route)
