import type { IncomingMessage } from 'node:http'
import type { Query } from '../../../platform/database/database.ts'
import { randomToken } from '../../../platform/ids.ts'
import type { Logger } from '../../../platform/logger.ts'
import type { Metrics } from '../../../platform/metrics.ts'
import type { Cookies } from '../../base/cookies.ts'
import type { Limits } from '../../base/rate-limits/rate-limits.ts'
import type { AuthorizationRequest } from '../../interaction/authorization-request.ts'
import { type AuthorizationResult, authorizationResponse } from '../../interaction/authorization-response.ts'
import type { Interactions } from '../../interaction/interactions.ts'
import { redirectBrowser, sendAuthorizationResponse } from '../../interaction/send-authorization-response.ts'
import type { Visitor, VisitorOf } from '../../interaction/visitor.ts'
import { type Brandings, errorPage, type LocaleOf, type PageProblem, sendPage } from '../../pages/index.ts'
import { type Endpoint, errorToTell } from '../answers.ts'
import type { Recipient } from './answer-checks.ts'
import { type AskingClient, findAuthorizationFacts } from './authorization-facts-store.ts'
import { type AuthorizationParameters, onlyValueOf, readAuthorizationParameters } from './authorization-parameters.ts'
import type { CheckRequest } from './checks.ts'
import { unknownClient } from './client-checks.ts'
import { isFromAnotherSite } from './from-another-site.ts'
import { isOurs, type KeptRequest, type PushedRequests } from './pushed-requests.ts'
import { likelyResources, likelyScopes } from './target-checks.ts'

export interface AuthorizationEndpointDependencies {
  query: Query
  checkRequest: CheckRequest
  pushedRequests: PushedRequests
  interactions: Interactions
  brandings: Brandings
  localeOf: LocaleOf
  visitorOf: VisitorOf
  cookies: Pick<Cookies, 'set'>
  limits: Pick<Limits, 'storedRequestFrom'>
  /** Of tokens and of discovery. */
  issuer: string
  logger: Logger
  metrics: Metrics
}

/**
 * `GET|POST /oidc/auth` (RFC 6749 §3.1, OpenID Connect Core §3.1.2): read → what was kept takes its place → look up →
 * check (`checks.ts`) → begin → to the client with a code, to a page, or to the client with an error.
 */
export const createAuthorizationEndpoint = (dependencies: AuthorizationEndpointDependencies): Endpoint => {
  const { query, checkRequest, pushedRequests, interactions, visitorOf, cookies, limits, issuer, logger } = dependencies
  const counter = dependencies.metrics.counter(
    'surrogate_authorization_requests_total',
    'Authorization requests by what they led to: code, interaction, or an error.',
    ['outcome'],
  )
  const { origin, protocol } = new URL(issuer)
  const secure = protocol === 'https:'
  const tellIgnoredScopes = onceForEachClient(logger)

  /** The browser posted it without its cookies: by GET it brings them. */
  const keepForGet = async (sent: AuthorizationParameters, { visitor }: Visit): Promise<Answer> => {
    const clientId = onlyValueOf(sent, 'client_id')
    if (clientId === undefined) return { problem: 'invalid_request' }
    let requestUri = onlyValueOf(sent, 'request_uri')
    // What the client sent ahead is kept already.
    if (!isOurs(requestUri)) {
      await limits.storedRequestFrom?.(visitor.origin.ip)
      requestUri = await pushedRequests.post(sent)
    }
    return { location: `/oidc/auth?${new URLSearchParams({ client_id: clientId, request_uri: requestUri })}` }
  }

  /** RFC 9126 §4: beside a `request_uri` only `client_id` counts. Undefined when there is no such request any more. */
  const readKept = async (sent: AuthorizationParameters, requestUri: string, visit: Visit) => {
    const clientId = onlyValueOf(sent, 'client_id')
    if (clientId === undefined) return undefined
    // What is kept belongs to a browser from now on, so it needs a cookie to be known by.
    const browser = visit.visitor.browser ?? randomToken()
    const kept = await pushedRequests.use(requestUri, { clientId, browser })
    if (!kept || onlyValueOf(kept.parameters, 'client_id') !== clientId) return undefined
    if (kept.digest && visit.visitor.browser === undefined) {
      visit.visitor = { ...visit.visitor, browser }
      visit.setCookies = [cookies.set('browser', browser)]
    }
    return kept
  }

  const lookUp = async (parameters: AuthorizationParameters) => {
    const { client = unknownClient, ...facts } = await findAuthorizationFacts(query, {
      clientId: onlyValueOf(parameters, 'client_id'),
      resources: likelyResources(parameters),
      scopes: likelyScopes(parameters),
    })
    return { parameters, client, facts }
  }

  const authorize = async ({ parameters, digest }: KeptRequest, visit: Visit): Promise<Answer> => {
    const asked = { ...(await lookUp(parameters)), isPushed: digest !== undefined }
    const { client } = asked
    const checked = await checkRequest(asked)
    if ('error' in checked) {
      const { error, message } = checked.error
      logger.debug({ clientId: client.id, check: checked.check, error }, 'authorization request refused')
      if ('recipient' in checked) return { recipient: checked.recipient, result: { error, description: message } }
      const value = checked.problem === 'invalid_redirect_uri' ? onlyValueOf(parameters, 'redirect_uri') : undefined
      return { problem: checked.problem, client: client === unknownClient ? undefined : client, value }
    }
    const request: AuthorizationRequest = { ...checked.request, pushedRequest: digest?.toString('hex') }
    tellIgnoredScopes(request, likelyScopes(parameters))
    const begun = await interactions.begin(request, client, visit.visitor)
    visit.setCookies = [...visit.setCookies, ...begun.setCookies]
    if (begun.kind === 'page') return { location: begun.location }
    if (begun.kind === 'authorized' && digest) await pushedRequests.end(digest)
    return { recipient: request, result: begun }
  }

  const answerTo = async (request: IncomingMessage, visit: Visit): Promise<Answer> => {
    const sent = await readAuthorizationParameters(request)
    visit.uiLocales = onlyValueOf(sent, 'ui_locales')?.split(' ')
    if (request.method === 'POST' && isFromAnotherSite(request, origin)) return keepForGet(sent, visit)
    const requestUri = onlyValueOf(sent, 'request_uri')
    if (!isOurs(requestUri)) return authorize({ parameters: sent, digest: undefined }, visit)
    const kept = await readKept(sent, requestUri, visit)
    if (!kept) return { problem: 'invalid_request_uri' }
    visit.uiLocales = onlyValueOf(kept.parameters, 'ui_locales')?.split(' ')
    return authorize(kept, visit)
  }

  return async (request, response, requestId) => {
    const visit: Visit = { visitor: visitorOf(request), setCookies: [], uiLocales: undefined }
    const answer = await answerTo(request, visit).catch((cause: unknown): Answer => {
      const { status, headers } = errorToTell(cause, logger, requestId, 'an authorization request')
      return { problem: problems.get(status) ?? 'invalid_request', status, headers }
    })
    counter.inc({ outcome: outcomeOf(answer) })
    const { setCookies, uiLocales } = visit
    if ('location' in answer) return redirectBrowser(response, answer.location, { setCookies })
    const locale = dependencies.localeOf({ uiLocales, acceptLanguage: visit.visitor.acceptLanguage })
    if ('recipient' in answer) {
      const { recipient, result } = answer
      const options = { setCookies, locale, secure }
      return sendAuthorizationResponse(response, authorizationResponse(recipient, result, issuer), options)
    }
    const { status = 400, headers, ...shown } = answer
    const branding = await dependencies.brandings.of(undefined)
    sendPage(response, status, errorPage({ ...shown, locale, requestId }), { headers, setCookies, secure, branding })
  }
}

/** To one of our pages, to the client, or, for what the client cannot be told, a page that says so. */
type Answer =
  | { location: string }
  | { recipient: Recipient; result: AuthorizationResult }
  | {
      problem: PageProblem
      client?: AskingClient | undefined
      value?: string | undefined
      status?: number
      headers?: Record<string, string>
    }

const outcomeOf = (answer: Answer): string => {
  if ('location' in answer) return 'interaction'
  if ('problem' in answer) return answer.problem
  return 'code' in answer.result ? 'code' : answer.result.error
}

/** What is known of the browser, and what it gets whatever the answer is. */
interface Visit {
  visitor: Visitor
  setCookies: readonly string[]
  uiLocales: readonly string[] | undefined
}

/** By HTTP status. */
const problems = new Map<number, PageProblem>([
  [429, 'too_many_requests'],
  [500, 'server_error'],
  [503, 'temporarily_unavailable'],
])

/** Clients that are told apart; those beyond are told again. */
const maxClients = 1_000

/** A scope that is ignored may be a mistake in the client, but one line says so. */
const onceForEachClient = (logger: Logger) => {
  const told = new Set<string>()
  return ({ clientId, scopes }: AuthorizationRequest, asked: readonly string[]) => {
    const ignored = asked.filter((name) => !scopes.includes(name))
    if (ignored.length === 0 || told.has(clientId)) return
    if (told.size >= maxClients) told.clear()
    told.add(clientId)
    const scopesToTell = ignored.slice(0, 10).map((name) => name.slice(0, 64))
    logger.warn({ clientId, scopes: scopesToTell }, 'a client asks for scopes that do not exist; they are ignored')
  }
}
