import { problem } from '../refusals/problems.ts'
import type { HeldBodies } from './held-bodies.ts'
import { requireJson } from './json-body.ts'
import { readBody, tooLarge } from './read-body.ts'
import { answered, type RoutedRequest, type Stage } from './request-context.ts'

/** Bodies that rules decide about (`policyBody`): read whole before the decision, forwarded as they were received. */

export interface ReadPolicyBodyParts {
  heldBodies: HeldBodies | undefined
  upstreams: ReadonlyMap<string, { readonly clientTimeout: number }>
}

/**
 * A client has the time of its upstream for standing still (`idleTimeout`), and as long again as the longest body takes
 * at 1 kB/s: a byte a millisecond.
 */
const timeFor = (clientTimeout: number, most: number): number => clientTimeout + most

/** For the proxy. A body of no bytes is no body, however it is framed. */
export const createReadPolicyBody =
  ({ heldBodies: held, upstreams }: ReadPolicyBodyParts): Stage<RoutedRequest> =>
  (context) => {
    const { route, headers, request, response } = context
    if (!route.policyBody || request.bodyLength === 0) return
    const upstream = upstreams.get(route.upstream)
    if (!held || !upstream) throw problem('not_found')
    const most = Math.min(route.policyBody.maxBytes, route.bodySize)
    const { bodyLength } = request
    if (bodyLength !== undefined) {
      requireJson(headers)
      if (bodyLength > most) throw tooLarge(most)
    }
    if (headers.expect !== undefined) {
      response.writeContinue()
      headers.expect = undefined
    }
    return readBody(context, { most, time: timeFor(upstream.clientTimeout, most), held }).then((body) => {
      if (!body) return answered
      if (body.length > 0) requireJson(headers)
      context.body = body
      return undefined
    })
  }

/**
 * For whoever asks about a request that is not here: it brings the body, whole, or the decision cannot be made. A
 * policy must not take a body that it was not shown for none.
 */
export const createRequireBody = (): Stage<RoutedRequest> => (context) => {
  const { route, headers, body } = context
  if (!route.policyBody) return
  if (!body) {
    const cause = new Error(`the route ${route.id} has policyBody, and whoever asked did not bring the body`)
    throw problem('body_unavailable', { cause })
  }
  if (body.length > route.policyBody.maxBytes) throw tooLarge(route.policyBody.maxBytes)
  if (body.length > 0) requireJson(headers)
}
