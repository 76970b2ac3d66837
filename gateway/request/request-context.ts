import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { AppError } from '../../platform/problem.ts'
import type { Decision, PolicyInput } from '../../policies/decide.ts'
import type { Route } from '../config/route.ts'
import type { CheckedRequest } from './checked-request.ts'
import type { ConnectionTls } from './client-certificate.ts'
import type { RequestHeaders } from './headers.ts'
import type { Principal } from './principal.ts'

/**
 * One request on its way through the pipeline. Every member is written by the stage named beside it and read by later
 * ones, which see it as a `ReadRequest`, `RoutedRequest` or `DecidedRequest`. Logs may see it after any stage.
 */
export interface RequestContext {
  readonly incoming: IncomingMessage
  readonly response: ServerResponse
  /** The request target as received, also where a framework has cut off the part it mounted us under. */
  readonly target: string
  /** For use as middleware: goes on with what is behind the guard. */
  readonly next: ((request: DecidedRequest) => void) | undefined
  /** For requests that ask for a WebSocket: what Node hands over with them. */
  readonly upgrade: { socket: Socket; head: Buffer } | undefined
  /** In ext_authz: what Envoy says of the request that it asks about. */
  readonly checked: CheckedRequest | undefined
  /** `performance.now()` at the start. */
  readonly startedAt: number
  /** readRequest */
  id: string
  request: CanonicalRequest | undefined
  headers: RequestHeaders | undefined
  /** of a connection whose client has shown a certificate */
  tls: ConnectionTls | undefined
  /** matchRoute */
  route: Route | undefined
  params: Record<string, string> | undefined
  /** authenticate; stays undefined on routes without authentication */
  principal: Principal | undefined
  /** readPolicyBody: whole, or brought by whoever asks; forwarded as it is. Empty: there was none. */
  body: Buffer | undefined
  /** authorize; without the body */
  input: PolicyInput | undefined
  decision: Decision | undefined
  /** assertIdentity: the signed identity for the upstream; on upstreams that ask for one */
  assertion: string | undefined
  /** matchRoute, limitRate: fields that stand on the answer, whoever gives it; lower-case names */
  answerFields: Record<string, string> | undefined
  /** forward, upgrade: the request upstream, which ends when the client goes away */
  upstreamRequest: UpstreamRequest | undefined
  /** why it was refused or failed */
  error: AppError | undefined
}

/** What the pipeline and the logs see of it. */
export interface UpstreamRequest {
  /** The name of the target that has it, or had it last. */
  readonly target?: string | undefined
  /** How often it was sent once more. */
  readonly retries?: number
  cancel(): void
}

/** After the first stage. */
export interface ReadRequest extends RequestContext {
  request: CanonicalRequest
  headers: RequestHeaders
}

/** With its route. */
export interface RoutedRequest extends ReadRequest {
  route: Route
  params: Record<string, string>
}

/** Let through by the policy of its route. */
export interface DecidedRequest extends RoutedRequest {
  input: PolicyInput
  decision: Decision
}

/** The one reading of a request that every later stage and the upstream share. */
export interface CanonicalRequest {
  readonly method: string
  readonly scheme: 'http' | 'https'
  /** Lower-case, default port dropped. */
  readonly host: string
  readonly path: string
  readonly segments: string[]
  /** With its `?`, or empty. */
  readonly query: string
  /** Whether an access token was taken out of the query. */
  readonly accessToken: boolean
  readonly encodedSlash: boolean
  readonly semicolon: boolean
  readonly clientIp: string
  /** The peer of the connection: the client itself or a proxy. */
  readonly peer: string
  /** In bytes; 0 = no body, undefined = chunked. */
  readonly bodyLength: number | undefined
  /** What `x-forwarded-for` says upstream. */
  readonly forwardedFor: string
}

/** Returned by a stage that has answered the request itself: no later stage runs. */
export const answered = 'answered'

/**
 * Throws `AppError` to end the request. Returns nothing when it is done, a promise of either outcome when it must wait.
 */
export type Stage<Request extends RequestContext = RequestContext> = (
  request: Request,
  // biome-ignore lint/suspicious/noConfusingVoidType: most stages return nothing
) => void | typeof answered | Promise<unknown>

/** Stages that count on what earlier ones have written: in a list without those, every request ends with 500. */
const after =
  <Request extends RequestContext>(isReady: (request: RequestContext) => request is Request) =>
  (...stages: readonly Stage<Request>[]): readonly Stage[] => [
    (request) => {
      if (!isReady(request)) throw new Error('a stage stands before those that it counts on')
    },
    ...(stages as readonly Stage[]),
  ]

export const afterReading = after(
  (request): request is ReadRequest => request.request !== undefined && request.headers !== undefined,
)
export const afterRouting = after(
  (request): request is RoutedRequest => request.route !== undefined && request.params !== undefined,
)
export const afterDeciding = after((request): request is DecidedRequest => request.decision?.allow === true)

export const newRequestContext = (
  incoming: IncomingMessage,
  response: ServerResponse,
  target: string = incoming.url ?? '',
  next?: RequestContext['next'],
  upgrade?: RequestContext['upgrade'],
  checked?: RequestContext['checked'],
): RequestContext => ({
  incoming,
  response,
  target,
  next,
  upgrade,
  checked,
  startedAt: performance.now(),
  id: '',
  request: undefined,
  headers: undefined,
  tls: undefined,
  route: undefined,
  params: undefined,
  principal: undefined,
  assertion: undefined,
  body: undefined,
  input: undefined,
  decision: undefined,
  answerFields: undefined,
  upstreamRequest: undefined,
  error: undefined,
})
