import { problem } from '../refusals/problems.ts'
import type { DecidedRequest, RequestContext, Stage } from '../request/request-context.ts'
import { ForwardedRequest } from './forwarded-request.ts'
import { readAhead, streamed, tooLarge } from './request-body.ts'
import { type Upstreams, upstreamOf } from './require-upstream.ts'

/**
 * Bodies up to this many bytes are read before the upstream is asked: one write there, and a slow client holds no
 * upstream connection.
 */
const readAheadBytes = 16_384

export interface ForwardParts {
  upstreams: Upstreams
  /** Ends a request whose upstream failed after the stage had returned. */
  fail: (context: RequestContext, error: unknown) => void
}

/**
 * The last stage: one request upstream, re-framed, streaming both ways with back-pressure. The path is the canonical
 * one, the header fields are those that the first stage let through plus our own. A request takes its slot here, before
 * its body has come, and keeps it however often it is sent.
 */
export const createForward =
  ({ upstreams, fail }: ForwardParts): Stage<DecidedRequest> =>
  (context) => {
    const { request, route, body } = context
    const { bodyLength } = request
    const upstream = upstreamOf(upstreams, route)
    if (bodyLength !== undefined && bodyLength > route.bodySize) throw tooLarge()
    if (upstream.activeRequests.size >= upstream.maxRequests) throw problem('server.unavailable')
    const forwarded = new ForwardedRequest(context, upstream, fail)
    context.upstreamRequest = forwarded
    if (context.headers.expect !== undefined) context.response.writeContinue()
    if (body) forwarded.dispatch(body.length === 0 ? null : body)
    else if (bodyLength === 0) forwarded.dispatch(null)
    else if (bodyLength !== undefined && bodyLength <= readAheadBytes) readAhead(context.incoming, forwarded)
    else forwarded.dispatch(streamed)
  }
