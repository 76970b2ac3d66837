import type { IncomingMessage } from 'node:http'
import express, {
  type ErrorRequestHandler,
  type Express,
  type Request,
  type RequestHandler,
  type Response,
} from 'express'
import type { EventRequest } from '../../events/outbox.ts'
import type { Query } from '../../platform/database/database.ts'
import { newId } from '../../platform/ids.ts'
import type { Logger } from '../../platform/logger.ts'
import type { AuthenticateAccount } from '../account/api/bearer.ts'
import { authorize, refuseEscalation, requireFreshProof } from '../base/authorization.ts'
import type { RequestOrigin } from '../base/client-address.ts'
import { errorAnswer } from '../base/errors/error-answer.ts'
import { problem } from '../base/errors/problems.ts'
import type { Idempotency } from '../base/idempotency.ts'
import type { Total } from '../base/lists/list-store.ts'
import { isSearchParameter } from '../base/lists/search.ts'
import type { Mutate } from '../base/mutate.ts'
import { type InputIssue, parseInput } from '../base/parse-input.ts'
import { readJson, refuseUnstorable } from '../base/request-body.ts'
import {
  type Caller,
  type ManagementRoute,
  type Route,
  type RouteContext,
  type RouteFor,
  type RouteResult,
  routesFor,
  takesKey,
} from '../base/route.ts'
import { type PresentedToken, readPresentedToken } from '../tokens/dpop/presented-token.ts'
import type { Proofs } from '../tokens/dpop/proofs.ts'
import { type AuthenticateOptions, createAuthenticate } from './authenticate.ts'
import { createConditional } from './conditional.ts'
import { createDocumentsRouter } from './documents-router.ts'
import { isDryRun, rehearse } from './dry-run.ts'
import { sendEventStream } from './event-stream.ts'
import { sendJsonLines } from './json-lines.ts'
import { namedSession } from './named-session.ts'
import { pageHeaders, pageOf } from './pagination.ts'

export interface ManagementApiOptions extends AuthenticateOptions {
  /** Those for the Management API and for people about their own accounts are served, others left out. */
  routes: readonly Route[]
  /** Who calls about their own account. Absent: there are no such routes. */
  authenticateAccount?: AuthenticateAccount
  /** `BASE_URL`, for the addresses in `Link`. */
  baseUrl: string
  /** The address a request comes from (`base/client-address.ts`). */
  clientAddress: (request: IncomingMessage) => string
  /** Throws `rate_limit.exceeded`. Absent: no limit. */
  limitClient?: ((clientId: string) => Promise<void>) | undefined
  /** The permissions of the Management API that a user holds. Absent: nobody holds any. */
  scopesOfUser?: (userId: string) => Promise<string[]>
  /** For what leaves a row without a change. Absent: nothing does. */
  mutate?: Mutate
  idempotency: Idempotency
  /** For versions, and for sessions that callers name. */
  query: Query
  /** For tokens that are bound to a key (RFC 9449). */
  proofs: Pick<Proofs, 'forToken'>
  logger: Logger
}

const requestIdHeader = 'Logto-Core-Request-Id'

/**
 * The Management API and the Account API as an Express application that answers `/api/*`; requests keep their whole
 * path. Writes nothing outside the handlers.
 */
export const createManagementApi = (options: ManagementApiOptions): Express => {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.set('query parser', 'simple')
  // Otherwise `/API` would be another way in, past whoever guards `/api`.
  app.enable('case sensitive routing')

  const api = express.Router({ caseSensitive: true, strict: true })
  const routes = routesFor('management', options.routes)
  const serve = createServe(options, routes)
  const accountRoutes = routesFor('account', options.routes)
  for (const [path, definitions] of byPath([...routes, ...accountRoutes])) {
    const handlers = api.route(path)
    for (const definition of definitions) handlers[lowerCase(definition.method)](serve(definition))
    handlers.all(refuseMethod(definitions))
  }

  app.use(identify(options.logger))
  app.use('/api', createDocumentsRouter({ ...options, routes, accountRoutes }), api)
  app.use((_request, _response, next) => next(problem('guard.not_found')))
  app.use(createAnswerError(options.logger))
  return app
}

type Served = ManagementRoute | RouteFor<'account'>

/** Who calls, and what handlers of such routes are told besides. */
interface Proven {
  caller: Caller
  more: object
  /** The session of somebody else that the call is about. */
  sid?: string | undefined
}

const createProve = (options: ManagementApiOptions) => {
  const { authenticateAccount } = options
  const authenticate = createAuthenticate(options)

  /** Whoever sets a password, an address or a factor of somebody can sign in as them, and hold what they hold. */
  const refuseTakingOver = async (
    { method, path, secret }: ManagementRoute,
    userId: string | string[] | undefined,
    caller: Caller,
  ): Promise<void> => {
    const isAboutUser = path === '/users/:userId' || path.startsWith('/users/:userId/')
    if (!isAboutUser || (method === 'GET' && !secret)) return
    await refuseEscalation(caller, async () => (await options.scopesOfUser?.(String(userId))) ?? [])
  }

  return async (
    definition: Served,
    request: Request,
    presented: PresentedToken,
    origin: RequestOrigin,
  ): Promise<Proven> => {
    if (definition.access === 'account') {
      if (!authenticateAccount) throw problem('guard.not_found')
      const person = await authenticateAccount({ presented, headers: request.headers, origin })
      const { userId: subject, clientId = '', scopes = new Set<string>() } = person
      return { caller: { subject, clientId, scopes }, more: { person, auditArea: 'Account' } }
    }
    const caller = await authenticate(presented)
    // People share the console, but no limit.
    await options.limitClient?.(caller.person?.userId ?? caller.clientId)
    authorize(definition, caller)
    // What a deletion would end is only told.
    if (definition.freshProof && !isDryRun(definition, request.query)) requireFreshProof(caller)
    await refuseTakingOver(definition, request.params['userId'], caller)
    return { caller, more: {}, sid: await namedSession(options.query, request, caller) }
  }
}

/** Authenticate → limit → authorize → read and parse → answered before? → handle → answer. */
const createServe = (options: ManagementApiOptions, routes: readonly ManagementRoute[]) => {
  const prove = createProve(options)
  const conditional = createConditional(routes, options.query)
  return (definition: Served): RequestHandler => {
    const { concerned, run } = conditional(definition)
    return async (request, response) => {
      const origin = { ip: options.clientAddress(request), userAgent: request.headers['user-agent'] }
      const presented = readPresentedToken(options.proofs, request, response)
      const { caller, more, sid } = await prove(definition, request, presented, origin)
      response.locals['clientId'] = caller.clientId
      const { context: read, json } = await readContext(definition, caller, request, { ...origin, sid })
      const context: Context = {
        ...read,
        ...more,
        entity: concerned({ headers: request.headers, params: read.request.params }),
      }
      const { entity } = context
      const isTried = definition.access === 'management' && isDryRun(definition, request.query)
      const handle = async (own: Context) =>
        isTried && entity
          ? rehearse(entity, (dryRun) => Promise.resolve(definition.handle({ ...own, dryRun })))
          : ((await definition.handle(own)) ?? undefined)
      const key = takesKey(definition) ? request.headers['idempotency-key'] : undefined
      const result =
        key === undefined
          ? await run(context, response, () => handle(context))
          : await options.idempotency.run({ key: String(key), route: definition, context, body: json }, handle)
      if (showsSecret(definition)) await options.mutate?.(context, async () => {})
      const headers = context.page && pageHeaders(addressOf(request, options.baseUrl), context.page, totalOf(result))
      await answer(response, definition, result, headers)
    }
  }
}

const showsSecret = (definition: Served): boolean =>
  definition.access === 'management' && definition.method === 'GET' && definition.freshProof === true

/** Made from our own base address: `Host` is whatever the caller or a proxy says. */
const addressOf = ({ path, originalUrl }: Request, baseUrl: string) => {
  const query = originalUrl.includes('?') ? originalUrl.slice(originalUrl.indexOf('?')) : ''
  return new URL(`${baseUrl}/api${path}${query}`)
}

type Context = RouteContext<unknown, unknown, unknown>

const readContext = async (
  definition: Served,
  caller: Caller,
  request: Request,
  origin: RequestOrigin & Pick<EventRequest, 'sid'>,
): Promise<{ context: Context; json: unknown }> => {
  refuseUnstorable(request.params, 'path')
  refuseUnstorable(request.query, 'query')
  const params = parse(definition.params, request.params)
  const page = definition.paged && pageOf(request.query, definition.paged)
  const query = parse(definition.query, request.query, queryProblem)
  const json = definition.body && (await readJson(request))
  const body = parse(definition.body, json)
  const context: Context = {
    operationId: definition.operationId,
    caller,
    params,
    query,
    body,
    page,
    lastEventId: request.get('last-event-id'),
    // Of those sent, what was read: not the defaults, not what is ignored.
    fields: Object.keys(Object(json)).filter((name) => Object.hasOwn(body, name)),
    request: {
      ...origin,
      method: definition.method,
      path: request.path,
      matchedRoute: definition.path,
      params: { ...request.params } as Record<string, string>,
      status: definition.status,
    },
  }
  return { context, json }
}

const parse = (schema: Route['body'], input: unknown, codeOf?: Parameters<typeof parseInput>[2]): object =>
  schema ? (parseInput(schema, input, codeOf) as object) : {}

/** Existing clients know a search that is not valid by a code of its own. */
const queryProblem = (issues: readonly InputIssue[]) =>
  issues.every(({ path }) => isSearchParameter(path)) ? 'request.invalid_input' : 'guard.invalid_input'

const answer = async (
  response: Response,
  definition: Served,
  result: RouteResult | undefined,
  headers: Record<string, string> = {},
) => {
  const { body, lines, events, status = definition.status, headers: own = {} } = result ?? {}
  response.status(status).set({ ...headers, ...own })
  const isHead = response.req.method === 'HEAD'
  if (lines !== undefined && !isHead) await sendJsonLines(response, lines)
  else if (events !== undefined && !isHead) await sendEventStream(response, events)
  else if (body === undefined) response.end()
  else response.json(body)
}

const createAnswerError =
  (logger: Logger): ErrorRequestHandler =>
  (error, _request, response, _next) => {
    const { status, headers, body } = errorAnswer(error, logger, String(response.getHeader(requestIdHeader)))
    if (response.headersSent) response.destroy()
    else response.status(status).set(headers).json(body)
  }

const totalOf = ({ total, isCapped = false }: RouteResult = {}): Total => {
  if (total === undefined) throw new Error('A paged route must say the total.')
  return { total, isCapped }
}

const byPath = (routes: readonly Served[]): Map<string, Served[]> => Map.groupBy(routes, ({ path }) => path)

const lowerCase = (method: Route['method']) => method.toLowerCase() as Lowercase<Route['method']>

const refuseMethod = (definitions: readonly Served[]): RequestHandler => {
  const methods = definitions.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
  return () => {
    throw problem('guard.method_not_allowed', { headers: { Allow: methods.join(', ') } })
  }
}

/** Gives the request its id, and one line in the log when it ends. Answers may hold secrets: nobody stores them. */
const identify =
  (logger: Logger): RequestHandler =>
  (request, response, next) => {
    const requestId = String(response.getHeader(requestIdHeader) ?? newId())
    const started = performance.now()
    // Answers hold what others wrote (names, what receivers answered): no browser may take them for a page.
    response.set({
      [requestIdHeader]: requestId,
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
    })
    response.on('close', () => {
      const { method } = request
      const path = request.originalUrl.split('?', 1)[0]
      const ms = Math.round(performance.now() - started)
      const { clientId } = response.locals
      logger.info({ requestId, method, path, status: response.statusCode, ms, clientId }, 'management request')
    })
    next()
  }
