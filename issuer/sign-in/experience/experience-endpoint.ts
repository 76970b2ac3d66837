import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { EventRequest } from '../../../events/outbox.ts'
import type { Query } from '../../../platform/database/database.ts'
import type { Logger } from '../../../platform/logger.ts'
import type { Metrics } from '../../../platform/metrics.ts'
import type { WithPermitOf } from '../../../platform/semaphore.ts'
import { errorAnswer } from '../../base/errors/error-answer.ts'
import { problem } from '../../base/errors/problems.ts'
import { parseInput } from '../../base/parse-input.ts'
import { readJson } from '../../base/request-body.ts'
import type { SignInExperience } from '../../directory/sign-in-experience/sign-in-experience.ts'
import { findInteraction, findNewestInteraction, type Interaction } from '../../interaction/interaction-store.ts'
import type { InteractionOperations } from '../../interaction/operations.ts'
import type { Visitor, VisitorOf } from '../../interaction/visitor.ts'
import type { LocaleOf } from '../../pages/index.ts'
import { tokenDigest } from '../../tokens/token-digest.ts'
import { signInsCounter } from '../sign-ins-counter.ts'
import { experienceRoutes } from './index.ts'
import { createOrigins, type SignInPagesOf } from './origins.ts'
import type { Call, CallResult, ExperienceRoute } from './route.ts'

export interface ExperienceDependencies {
  query: Query
  operations: InteractionOperations
  /** For calls that hash. */
  inTurn: WithPermitOf
  visitorOf: VisitorOf
  settings: () => SignInExperience
  localeOf: LocaleOf
  signInPagesOf: SignInPagesOf
  /** Where browsers reach the issuer. */
  baseUrl: string
  logger: Logger
  metrics: Metrics
}

export type ExperienceEndpoint = (
  request: IncomingMessage,
  response: ServerResponse,
  requestId: string,
) => Promise<void>

const prefix = '/api/experience'

/** Which interaction a call is about, and for which client. */
const interactionHeader = 'surrogate-interaction'
const clientHeader = 'logto-app-id'

/** Of a call, in bytes. A passkey with its attestation is the largest. */
const bodyLimit = 65_536

/** How long a browser may remember a preflight, in seconds. */
const preflightAge = '600'

type Methods = ReadonlyMap<string, ExperienceRoute>

/** By path, and within it by method. */
const routesByPath: ReadonlyMap<string, Methods> = new Map(
  [...Map.groupBy(experienceRoutes, ({ path }) => path)].map(([path, routes]) => [
    path,
    new Map(routes.map((route) => [route.method, route])),
  ]),
)
/** The few that have parameters in them. */
const patterns = [...routesByPath]
  .filter(([path]) => path.includes(':'))
  .map(([path, methods]) => ({ pattern: new RegExp(`^${path.replaceAll(/:(\w+)/g, '(?<$1>[^/]+)')}$`), methods }))

const findRoutes = (path: string): { methods: Methods; params: Record<string, string> } | undefined => {
  const exact = path.includes(':') ? undefined : routesByPath.get(path)
  if (exact) return { methods: exact, params: {} }
  for (const { pattern, methods } of patterns) {
    const found = pattern.exec(path)
    if (found) return { methods, params: { ...found.groups } }
  }
  return undefined
}

/**
 * `/api/experience/…`, for pages of signing in that are not ours. Whatever a page sends or leaves out, nothing comes
 * of it that `nextStep` does not allow: it is asked again in the transaction of `/submit`.
 */
export const createExperienceEndpoint = (dependencies: ExperienceDependencies): ExperienceEndpoint => {
  const { query, operations, inTurn, visitorOf, settings, localeOf, baseUrl, logger } = dependencies
  const origins = createOrigins(dependencies)
  const counter = signInsCounter(dependencies.metrics)

  const interactionOf = async (request: IncomingMessage, { browser }: Visitor): Promise<Interaction | undefined> => {
    if (browser === undefined) return undefined
    const digest = tokenDigest('browser', browser)
    const named = onlyHeader(request, interactionHeader)
    const id = named ?? (await findNewestInteraction(query, digest, onlyHeader(request, clientHeader)))
    const interaction = id === undefined ? undefined : await findInteraction(query, id)
    // An unknown one and somebody else's are told apart by nothing.
    return interaction && timingSafeEqual(digest, interaction.browser) ? interaction : undefined
  }

  const preflight = async (request: IncomingMessage, response: ServerResponse, methods: readonly string[]) => {
    const { origin } = request.headers
    if (origin !== undefined && (await origins.isKnown(origin))) {
      allowOrigin(response, origin)
      response.setHeader('Access-Control-Allow-Methods', methods.join(', '))
      response.setHeader('Access-Control-Allow-Headers', `content-type, ${interactionHeader}, ${clientHeader}`)
      response.setHeader('Access-Control-Max-Age', preflightAge)
    }
    response.writeHead(204, { Allow: [...methods, 'OPTIONS'].join(', ') }).end()
  }

  const answer = async (request: IncomingMessage, response: ServerResponse, requestId: string): Promise<void> => {
    const path = pathOf(request.url)
    // Pages that were made for others write the first one with a slash.
    const found = findRoutes(path === `${prefix}/` ? '' : path.slice(prefix.length))
    if (!found) throw problem('guard.not_found')
    const { methods } = found
    if (request.method === 'OPTIONS') return preflight(request, response, [...methods.keys()])

    const visitor = visitorOf(request)
    const interaction = await interactionOf(request, visitor)
    const origin = await origins.required(request, interaction?.client.id)
    if (origin !== undefined) allowOrigin(response, origin)
    const route = methods.get(request.method ?? '')
    if (!route) {
      throw problem('guard.method_not_allowed', { headers: { Allow: [...methods.keys(), 'OPTIONS'].join(', ') } })
    }
    const { browser } = visitor
    if (!interaction || browser === undefined || !(interaction.isOpen || route.takesFinished)) {
      throw problem('session.not_found')
    }
    const sent = route.method === 'GET' ? queryOf(request.url) : await readJson(request, { limit: bodyLimit })
    const known = { ...visitor, browser }
    const call: Call = {
      ...{ query, operations, baseUrl, interaction, requestId, visitor: known, settings: settings() },
      pageOrigin: origin,
      params: route.params ? parseInput(route.params, found.params) : {},
      body: route.body ? parseInput(route.body, sent) : {},
      request: eventRequestOf(route, interaction, visitor),
      locale: localeOf({ uiLocales: interaction.request.uiLocales, acceptLanguage: visitor.acceptLanguage }),
      standing: () => operations.standingOf(query, interaction, known),
      count: (proof, outcome) => counter.inc({ proof, outcome }),
    }
    const handle = async () => route.handle(call)
    const result = await (route.hashes ? inTurn(interaction.id, handle) : handle())
    send(response, route, result ?? {})
  }

  return async (request, response, requestId) => {
    // Answers hold what only this browser may see, and secrets.
    response.setHeader('Cache-Control', 'no-store')
    response.setHeader('X-Content-Type-Options', 'nosniff')
    response.setHeader('Vary', 'Origin')
    const started = performance.now()
    response.on('close', () => {
      const ms = Math.round(performance.now() - started)
      const { method } = request
      logger.info({ requestId, method, path: pathOf(request.url), status: response.statusCode, ms }, 'sign-in request')
    })
    try {
      await answer(request, response, requestId)
    } catch (error) {
      const { status, headers, body } = errorAnswer(error, logger, requestId)
      if (response.headersSent) response.destroy()
      else sendJson(response, status, body, headers)
    }
  }
}

const allowOrigin = (response: ServerResponse, origin: string) => {
  response.setHeader('Access-Control-Allow-Origin', origin)
  response.setHeader('Access-Control-Allow-Credentials', 'true')
  response.setHeader('Access-Control-Expose-Headers', 'Retry-After, Logto-Core-Request-Id')
}

const send = (response: ServerResponse, route: ExperienceRoute, { status, body, setCookies = [] }: CallResult) => {
  for (const cookie of setCookies) response.appendHeader('Set-Cookie', cookie)
  const code = status ?? route.status
  if (body === undefined) response.writeHead(code, code === 204 ? {} : { 'Content-Length': 0 }).end()
  else sendJson(response, code, body)
}

const sendJson = (response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) => {
  const text = JSON.stringify(body)
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
    ...headers,
  })
  response.end(text)
}

const onlyHeader = ({ headers }: IncomingMessage, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

const pathOf = (url = '/'): string => url.split('?', 1)[0] ?? url

/** A parameter that is repeated is an array, which no schema takes for a text. */
const queryOf = (url = '/'): Record<string, unknown> => {
  const { searchParams } = new URL(url, 'http://issuer')
  return Object.fromEntries(
    [...new Set(searchParams.keys())].map((name) => {
      const values = searchParams.getAll(name)
      return [name, values.length === 1 ? values[0] : values]
    }),
  )
}

const eventRequestOf = (route: ExperienceRoute, { id }: Interaction, { origin }: Visitor): EventRequest => ({
  ip: origin.ip,
  userAgent: origin.userAgent,
  method: route.method,
  path: prefix + route.path,
  matchedRoute: `/experience${route.path}`,
  params: { interactionId: id },
  status: route.status,
})
