import type { IncomingMessage } from 'node:http'
import { uuidv7 } from '../../platform/ids.ts'
import { problem } from '../refusals/problems.ts'
import { parseHost } from '../routing/host.ts'
import { canonicalTarget, refuse } from './canonical-target.ts'
import { type ProxyTrust, plainAddress, sourceOf } from './client-address.ts'
import { connectionTlsOf, isEncrypted } from './client-certificate.ts'
import { type RequestHeaders, readHeaders } from './headers.ts'
import { http2Fields } from './http2-fields.ts'
import { Http2Request } from './http2-request.ts'
import type { CanonicalRequest, RequestContext, Stage } from './request-context.ts'
import { readTrace, type Tracing } from './request-trace.ts'

export interface RequestLimits {
  /** Characters of the request target. */
  targetLength: number
  /** Number of header fields. */
  headerCount: number
  /** Bytes of their names and values. */
  headerSize: number
}

export interface ReadRequestParts {
  limits: RequestLimits
  trust: ProxyTrust
  /** Default: no spans. */
  tracing?: Tracing | undefined
}

/**
 * The first stage: takes a request in exactly one way or not at all. Node's parser lets more through than RFC 9112 does
 * (absolute-form and asterisk-form targets, fragments, backslashes, several Host fields, HTTP/2.0 on the request line,
 * Transfer-Encoding on HTTP/1.0); all of it ends here.
 */
export const createReadRequest = (
  { limits, trust, tracing }: ReadRequestParts,
  requestLine = ownRequestLine,
): Stage => {
  return (context) => {
    const { incoming } = context
    const peer = plainAddress(incoming.socket.remoteAddress)
    const trusted = trust.trusts(peer)
    context.id = uuidv7()
    const headers = readHeaders(isHttp2(incoming) ? http2Fields(incoming.rawHeaders) : incoming.rawHeaders)
    if (trusted && headers.requestId !== undefined && /^[\w.:-]{1,128}$/.test(headers.requestId)) {
      context.id = headers.requestId
    }
    context.headers = headers
    if (tracing || headers.traceparent !== undefined || headers.tracestate !== undefined) {
      context.trace = readTrace(headers, trusted, tracing)
    }
    context.tls = connectionTlsOf(incoming.socket)
    const source = sourceOf(peer, headers, trust)
    headers.forwardedProto = source.proto
    headers.forwardedHost = source.host
    // Node's parser reads no further request from a connection after one that asks for another protocol.
    if (headers.upgrade !== undefined) context.response.shouldKeepAlive = false
    const { method, target, host } = requestLine(context, headers, trusted)
    checkLimits(target, headers, limits)
    const bodyLength = framing(incoming, headers)
    readExpectation(incoming, headers)
    if (method === 'CONNECT' || method === 'TRACE') throw refuse(`The method ${method} is not served.`)
    const scheme = (trusted ? forwardedScheme(headers) : undefined) ?? (isEncrypted(incoming.socket) ? 'https' : 'http')
    const { path, segments, query, accessToken, encodedSlash, semicolon } = canonicalTarget(target)
    if (accessToken && holdsToken(headers.authorization)) throw refuse('The request has an access token twice.')
    context.request = {
      method,
      scheme,
      host: canonicalHost(host, scheme),
      path,
      segments,
      query,
      accessToken,
      encodedSlash,
      semicolon,
      clientIp: source.clientIp,
      peer,
      bodyLength,
      forwardedFor: source.forwardedFor,
    } satisfies CanonicalRequest
  }
}

/** Of the public listener: what another server hands over as HTTP/2 has not passed its limits. */
const isHttp2 = (incoming: IncomingMessage): boolean =>
  incoming.httpVersionMajor === 2 && (incoming as unknown) instanceof Http2Request

const checkLimits = (target: string, headers: RequestHeaders, limits: RequestLimits): void => {
  if (target.length > limits.targetLength) throw problem('uri_too_long')
  if (headers.count > limits.headerCount || headers.size > limits.headerSize) {
    throw problem('header_fields_too_large')
  }
}

/** RFC 9112 §6.3. Returns the length of the body in bytes, undefined when its end tells. */
const framing = (incoming: IncomingMessage, headers: RequestHeaders): number | undefined => {
  const { httpVersionMajor, httpVersionMinor } = incoming
  if (isHttp2(incoming)) {
    // RFC 9113 §8.1.1: the end of the stream is the end of the body; Node has compared it with a Content-Length.
    if (headers.contentLength === undefined) return incoming.complete ? 0 : undefined
    return Number(headers.contentLength)
  }
  if (httpVersionMajor !== 1 || httpVersionMinor > 1) throw refuse('Only HTTP/1.1 and HTTP/1.0 are served here.')
  const { transferEncoding, contentLength } = headers
  if (transferEncoding !== undefined) {
    if (httpVersionMinor === 0) throw refuse('HTTP/1.0 has no Transfer-Encoding.')
    if (contentLength !== undefined) throw refuse('The request has both Content-Length and Transfer-Encoding.')
    if (transferEncoding.toLowerCase() !== 'chunked') throw refuse('The only transfer coding served is chunked.')
    return undefined
  }
  if (contentLength === undefined) return 0
  if (!/^\d{1,15}$/.test(contentLength)) throw refuse('The Content-Length is not a number of bytes.')
  return Number(contentLength)
}

/**
 * RFC 9110 §10.1.1: there is one expectation, and HTTP/1.0 has none: such a client would take an interim answer for
 * the answer.
 */
const readExpectation = ({ httpVersion }: IncomingMessage, headers: RequestHeaders): void => {
  if (headers.expect === undefined) return
  if (headers.expect.toLowerCase() !== '100-continue') throw refuse('The only expectation served is 100-continue.')
  if (httpVersion === '1.0') headers.expect = undefined
}

const forwardedScheme = ({ forwardedProto }: RequestHeaders): 'http' | 'https' | undefined => {
  if (forwardedProto === undefined) return undefined
  const scheme = schemes[forwardedProto.toLowerCase()]
  if (scheme !== undefined) return scheme
  throw refuse('X-Forwarded-Proto must be http or https, once.')
}

/** Traefik tells of requests for WebSockets by the scheme that a page names. */
const schemes: Partial<Record<string, 'http' | 'https'>> = { http: 'http', https: 'https', ws: 'http', wss: 'https' }

/** RFC 6750 §2: a client uses one way to send its token. RFC 9449 §7.1 sends it under a scheme of its own. */
const holdsToken = (authorization: string | undefined): boolean => /^(?:bearer|dpop)(?: |$)/i.test(authorization ?? '')

/** Method, target and host: those of the request itself, or in forward-auth those of the request asked about. */
type RequestLine = (
  context: RequestContext,
  headers: RequestHeaders,
  trusted: boolean,
) => { method: string; target: string; host: string | undefined }

const ownRequestLine: RequestLine = ({ incoming, target }, { host, forwardedHost: forwarded }, trusted) => ({
  method: incoming.method ?? '',
  target,
  host: trusted && host !== undefined && forwarded !== undefined ? forwarded : host,
})

/** A cache, since hosts repeat; the bound keeps invented ones from filling the memory. */
const hosts = { http: new Map<string, string>(), https: new Map<string, string>() }
const maxHosts = 1_000

const canonicalHost = (raw: string | undefined, scheme: 'http' | 'https'): string => {
  if (raw === undefined) throw refuse('The request has no Host field.')
  const known = hosts[scheme].get(raw)
  if (known !== undefined) return known
  const host = parseHost(raw, scheme)
  if (host === undefined) throw refuse('The Host field is not a host name or address with an optional port.')
  if (hosts[scheme].size < maxHosts) hosts[scheme].set(raw, host)
  return host
}
