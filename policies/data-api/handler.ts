import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { throttledLevel } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import { sendError, sendJson } from './answer.ts'
import { ApiError, methodNotAllowed, notFound } from './api-error.ts'
import { answerDefault, answerV0, answerV1, type DataParts, readOnly } from './data-endpoint.ts'
import { answerHealth } from './health.ts'
import { CallerGone, createBodyReader } from './read-body.ts'
import { cleanedPath, isOn, readTarget, type Target } from './target.ts'
import type { Tokens } from './tokens.ts'

export interface DataApiOptions extends Omit<DataParts, 'readBody'> {
  /** Of a body, packed and unpacked. Bytes. */
  maxInput: number
  /** Whose requests are answered, health excepted. Default: everybody's. */
  tokens?: Pick<Tokens, 'allow'> | undefined
  metrics: Metrics
}

/**
 * OPA's REST API as far as it decides: `/v1/data`, `/v0/data`, `/`, `/health` and `/metrics`. What would change
 * policies or documents, and queries that are no path, are refused in the shape of OPA's errors.
 */
export const createDataApi = (options: DataApiOptions): RequestListener => {
  const { tokens, metrics, logger } = options
  const parts: DataParts = { ...options, readBody: createBodyReader({ maxBytes: options.maxInput }) }
  // By OPA's name, for dashboards made for it.
  const durations = metrics.histogram(
    'http_request_duration_seconds',
    'Time from the head of a request to its answer',
    [1e-6, 5e-6, 1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 1e-2, 1e-1, 1],
    ['code', 'handler', 'method'],
  )

  const authorize = (request: IncomingMessage): void => {
    if (!tokens) return
    const { authorization } = request.headersDistinct
    if (tokens.allow(authorization?.length === 1 ? authorization[0] : undefined)) return
    throw new ApiError(401, 'unauthorized', 'a bearer token of the server is needed', { fields: challenge })
  }

  const answer = async (endpoint: Endpoint, exchange: Exchange): Promise<void> => {
    const { request, response } = exchange
    try {
      if (!endpoint.open) authorize(request)
      await endpoint.answer(exchange, { ...options, parts })
    } catch (error) {
      if (error instanceof CallerGone || response.headersSent) return void response.destroy()
      if (error instanceof ApiError) return sendError(response, error)
      logger[throttledLevel(logger, 'error', 'internal')]({ err: error }, 'a request failed')
      sendError(response, new ApiError(500, 'internal_error', 'the server failed; its log says why'))
    }
  }

  return (request, response) => {
    const startedAt = performance.now()
    const target = readTarget(request.url!)
    const endpoint = endpoints.find(({ prefix }) => isBelow(target.path, prefix)) ?? elsewhere
    const rest = target.path.slice(endpoint.prefix.length + 1)
    response.once('finish', () => {
      const labels = { code: response.statusCode, handler: endpoint.name, method: methodLabel(request.method!) }
      durations.observe(labels, (performance.now() - startedAt) / 1_000)
    })
    void answer(endpoint, { request, response, target, rest })
  }
}

interface Exchange {
  request: IncomingMessage
  response: ServerResponse
  target: Target
  /** Of the path, behind the endpoint's own. */
  rest: string
}

interface Endpoint {
  /** As in OPA's metrics. */
  name: string
  prefix: string
  /** Answers without a token: probes have none. */
  open?: boolean
  answer(exchange: Exchange, options: DataApiOptions & { parts: DataParts }): Promise<void> | void
}

const isBelow = (path: string, prefix: string): boolean =>
  path.startsWith(prefix) && (path.length === prefix.length || path.charCodeAt(prefix.length) === 47)

const challenge = ['WWW-Authenticate', 'Bearer']

/** Methods are the caller's words; labels must not be. */
const methodLabel = (method: string): string => (methods.has(method) ? method.toLowerCase() : 'other')
const methods = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'])

const formOf = ({ request, target }: Exchange) => ({
  pretty: isOn(target.query, 'pretty'),
  accepts: request.headers['accept-encoding'],
})

const redirected = ({ response, target }: Exchange): boolean => {
  const clean = cleanedPath(target.path)
  if (clean === undefined) return false
  // 307, also for a slash at the end, where OPA's 301 makes clients of POST ask by GET.
  response.writeHead(307, ['Location', `${clean}${target.search}`, 'Content-Length', '0']).end()
  return true
}

const requireMethods = ({ request }: Exchange, ...allowed: string[]): void => {
  if (!allowed.includes(request.method!)) throw methodNotAllowed(allowed, `use ${allowed.join(' or ')}`)
}

const dataOf =
  (answer: (parts: DataParts, asked: Parameters<typeof answerV1>[1]) => Promise<unknown>): Endpoint['answer'] =>
  async (exchange, { parts }) => {
    if (redirected(exchange)) return
    const { request, response, target, rest } = exchange
    sendJson(response, 200, await answer(parts, { request, path: rest, query: target.query }), formOf(exchange))
  }

const absent = (name: string, prefix: string, message: string): Endpoint => ({
  name,
  prefix,
  answer(exchange) {
    if (redirected(exchange)) return
    if (!['GET', 'HEAD', 'POST'].includes(exchange.request.method!)) throw readOnly()
    throw notFound(message)
  },
})

const noPolicies = absent('v1/policies', '/v1/policies', 'rules are not shown; ask an entrypoint at /v1/data')

/** The first whose prefix fits. */
const endpoints: readonly Endpoint[] = [
  { name: 'v1/data', prefix: '/v1/data', answer: dataOf(answerV1) },
  { name: 'v0/data', prefix: '/v0/data', answer: dataOf(answerV0) },
  {
    name: 'health',
    prefix: '/health',
    open: true,
    answer(exchange, options) {
      requireMethods(exchange, 'GET', 'HEAD')
      const { status, body } = answerHealth(options, exchange.rest)
      sendJson(exchange.response, status, body, { pretty: false, accepts: undefined })
    },
  },
  {
    name: 'metrics',
    prefix: '/metrics',
    async answer(exchange, { metrics }) {
      requireMethods(exchange, 'GET', 'HEAD')
      const { contentType, text } = await metrics.render()
      exchange.response.writeHead(200, { 'content-type': contentType }).end(text)
    },
  },
  {
    ...noPolicies,
    answer(exchange, options) {
      // Clients ask for the list to see whether anybody is there.
      const asksForList = exchange.request.method === 'GET' && exchange.target.path === noPolicies.prefix
      if (!asksForList) return noPolicies.answer(exchange, options)
      sendJson(exchange.response, 200, { result: [] }, formOf(exchange))
    },
  },
  absent('v1/query', '/v1/query', 'compiled rules answer no ad hoc queries; ask an entrypoint at /v1/data'),
  absent('v1/compile', '/v1/compile', 'compiled rules are not evaluated partially; ask an entrypoint at /v1/data'),
]

/** `/` is the default decision; everything else is not there. */
const elsewhere: Endpoint = {
  name: 'index',
  prefix: '',
  async answer(exchange, { parts }) {
    const { request, response, target } = exchange
    if (target.path === '/') {
      const decision = await answerDefault(parts, { request, query: target.query })
      return sendJson(response, 200, decision, formOf(exchange))
    }
    if (redirected(exchange)) return
    throw notFound('there are /v1/data, /v0/data, /, /health and /metrics')
  },
}
