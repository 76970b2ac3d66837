import type { RequestContext } from '../request/request-context.ts'
import type { Attempt, Period, RequestTrace } from '../request/request-trace.ts'

/** A span before OpenTelemetry has made it. Times are those of `performance.now()`. */
export interface SpanDescription {
  kind: 'server' | 'internal' | 'client'
  name: string
  /** Default: a new one. */
  spanId?: string
  startedAt: number
  endedAt: number
  failed: boolean
  attributes: Record<string, string | number | boolean>
}

/** What finished requests did: first the request itself, then its parts. Names are those of the HTTP conventions. */
export const requestSpans = (context: RequestContext, trace: RequestTrace, endedAt: number): SpanDescription[] => [
  serverSpan(context, trace, endedAt),
  ...(trace.times?.periods ?? []).map((period) => periodSpan(context, period, endedAt)),
  ...(trace.times?.attempts ?? []).map((attempt, index) => attemptSpan(context, attempt, index, endedAt)),
]

/** Never the query, a field that may hold a credential, or who asked. */
const serverSpan = (context: RequestContext, trace: RequestTrace, endedAt: number): SpanDescription => {
  const { incoming, request, route, response, error, startedAt, id } = context
  const status = response.headersSent ? response.statusCode : 0
  const failed = status === 0 || status >= 500
  const method = request?.method ?? incoming.method ?? ''
  return {
    kind: 'server',
    name: route ? `${nameOf(method)} ${route.pattern.text}` : nameOf(method),
    ...(trace.spanId !== undefined && { spanId: trace.spanId }),
    startedAt,
    endedAt,
    failed,
    attributes: present({
      ...methodAttributes(method),
      'url.scheme': request?.scheme,
      'url.path': request?.path,
      ...(request && serverAttributes(request.host)),
      'http.route': route?.pattern.text,
      'http.response.status_code': status === 0 ? undefined : status,
      'error.type': failed ? (error?.code ?? (status === 0 ? 'client_gone' : String(status))) : undefined,
      'user_agent.original': incoming.headers['user-agent'],
      'network.protocol.version': incoming.httpVersionMajor === 2 ? '2' : incoming.httpVersion,
      'surrogate.request.id': id,
      'surrogate.route': route?.id,
      'surrogate.error': error?.code,
      'surrogate.target': context.upstreamRequest?.target,
      'surrogate.retries': context.upstreamRequest?.retries,
    }),
  }
}

const periodSpan = (
  { route, decision, error }: RequestContext,
  { name, startedAt, endedAt }: Period,
  end: number,
): SpanDescription => ({
  kind: 'internal',
  name,
  startedAt,
  endedAt: endedAt ?? end,
  failed: endedAt === undefined,
  attributes: present(
    name === 'decide'
      ? {
          'surrogate.entrypoint': route?.entrypoint,
          'surrogate.decision': decision && (decision.allow ? 'allow' : 'deny'),
          'surrogate.reason': decision && !decision.allow ? decision.reason : undefined,
        }
      : { 'surrogate.error': decision ? undefined : error?.code },
  ),
})

const attemptSpan = (
  { request, route, error }: RequestContext,
  attempt: Attempt,
  index: number,
  end: number,
): SpanDescription => {
  const { status, target, spanId, startedAt, endedAt } = attempt
  const method = request?.method ?? ''
  const cause = endedAt === undefined ? (error?.code ?? 'client_gone') : attempt.error
  const failed = cause !== undefined || (status !== undefined && status >= 400)
  return {
    kind: 'client',
    name: nameOf(method),
    spanId,
    startedAt,
    endedAt: endedAt ?? end,
    failed,
    attributes: present({
      ...methodAttributes(method),
      ...serverAttributes(target.origin.replace(/^https?:\/\//, '')),
      'url.scheme': target.origin.startsWith('https:') ? 'https' : 'http',
      'http.response.status_code': status,
      'http.request.resend_count': index === 0 ? undefined : index,
      'error.type': failed ? (cause ?? String(status)) : undefined,
      'surrogate.upstream': route?.upstream,
      'surrogate.target': target.name,
    }),
  }
}

/** Others are `_OTHER`: callers could make up as many as they like. */
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH', 'QUERY'])

const nameOf = (method: string): string => (methods.has(method) ? method : 'HTTP')

const methodAttributes = (method: string) =>
  methods.has(method)
    ? { 'http.request.method': method }
    : { 'http.request.method': '_OTHER', 'http.request.method_original': method || undefined }

/** Of `host` or `host:port`. */
const serverAttributes = (host: string) => {
  const [, address = host, port] = /^(.*?)(?::(\d+))?$/.exec(host) ?? []
  return {
    'server.address': address.replace(/^\[|\]$/g, ''),
    'server.port': port === undefined ? undefined : Number(port),
  }
}

const present = (
  attributes: Readonly<Record<string, string | number | boolean | undefined>>,
): SpanDescription['attributes'] =>
  Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined)) as never
