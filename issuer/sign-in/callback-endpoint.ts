import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import { logFault } from '../base/errors/log-fault.ts'
import { type Form, readForm } from '../base/read-form.ts'
import { callbackPath } from '../interaction/federation-requests.ts'
import { interactionPath } from '../interaction/interaction-path.ts'
import type { Interaction } from '../interaction/interaction-store.ts'
import type { InteractionOperations } from '../interaction/operations.ts'
import type { Redirect } from '../interaction/sealed-redirect.ts'
import { redirectBrowser, sendAuthorizationResponse } from '../interaction/send-authorization-response.ts'
import type { Visitor, VisitorOf } from '../interaction/visitor.ts'
import { type Brandings, errorPage, type LocaleOf, type PageProblem, sendPage } from '../pages/index.ts'
import { Refusal, refusalOf } from '../pages/refusal.ts'
import type { PageEndpoint } from './sign-in-endpoint.ts'
import { signInsCounter } from './sign-ins-counter.ts'

export interface CallbackDependencies {
  operations: Pick<InteractionOperations, 'federated' | 'accountFederation' | 'federationRequests' | 'finish'>
  /** What a page of another site posted, for 60 s and once. Absent: posts are refused. */
  keptPosts: KeptPosts | undefined
  visitorOf: VisitorOf
  brandings: Brandings
  localeOf: LocaleOf
  /** Where browsers reach the issuer. */
  baseUrl: string
  logger: Logger
  metrics: Metrics
}

export interface KeptPosts {
  /** Answers what takes it. Throws 429. */
  keep(parameters: Form, visitor: Visitor): Promise<string>
  take(id: string): Promise<Form | undefined>
}

const keptParameter = 'request_uri'

/**
 * `GET|POST /callback/<connector>`: where an identity provider sends the browser back to. A provider that posts does so
 * from another site, without our cookies (SameSite=Lax): what it posted waits, and the browser comes again by GET.
 */
export const createCallbackEndpoint = (dependencies: CallbackDependencies): PageEndpoint => {
  const { operations, keptPosts, visitorOf, brandings, localeOf, baseUrl, logger, metrics } = dependencies
  const counter = signInsCounter(metrics)
  const secure = baseUrl.startsWith('https:')

  const post = async (request: IncomingMessage, response: ServerResponse) => {
    if (!keptPosts) throw new Refusal('invalid_request', 405, { headers: { Allow: 'GET' } })
    const { pathname } = placeOf(request)
    const kept = await keptPosts.keep(await readForm(request), visitorOf(request))
    redirectBrowser(response, `${pathname}?${new URLSearchParams({ [keptParameter]: kept })}`)
  }

  /** Whose request it was: that of a sign-in, or of somebody who looks after their account. */
  const answered = async ({ connectorId, parameters, visitor }: Answer): Promise<Answered> => {
    const { federated, accountFederation, federationRequests } = operations
    const found = await federationRequests.awaitedBy(parameters)
    if (!found) return { outcome: 'refused' }
    const { awaited, state } = found
    const answer = { connectorId, state, parameters }
    if (awaited.account) return accountFederation.answer(awaited, visitor, answer)
    const gone = await federated.answer(awaited, visitor, answer)
    if (gone.outcome !== 'go_on') return gone
    const { interaction, isProven } = gone
    const redirect = isProven ? await finished(interaction.id, connectorId, visitor) : undefined
    const signedIn = redirect && { redirect, uiLocales: interaction.request.uiLocales }
    return { outcome: 'go_on', location: interactionPath(interaction.id), signedIn }
  }

  /** Where nothing else is due the browser goes to the client at once; else a page of the interaction asks for it. */
  const finished = async (interactionId: string, connectorId: string, { browser, ...visitor }: Visitor) => {
    if (browser === undefined) return undefined
    const { ip, userAgent } = visitor.origin
    const proceeded = await operations.finish.proceed(
      interactionId,
      { ...visitor, browser },
      {
        ...{ ip, userAgent, method: 'GET', status: 303 },
        path: callbackPath(connectorId),
        matchedRoute: callbackPath(':connectorId'),
        params: { connectorId },
      },
    )
    return proceeded.kind === 'redirect' ? proceeded.redirect : undefined
  }

  const get = async (request: IncomingMessage, response: ServerResponse) => {
    const { connectorId, parameters } = placeOf(request)
    const kept = parameters.get(keptParameter)
    const posted = kept === null || !keptPosts ? undefined : await keptPosts.take(kept)
    const answer = posted ? parametersOf(posted) : parameters
    const result = await answered({ connectorId, parameters: answer, visitor: visitorOf(request) })
    counter.inc({ proof: 'federated', outcome: result.outcome })
    if (result.outcome !== 'go_on') throw new Refusal(refusals[result.outcome], 400)
    const { location, signedIn } = result
    if (!signedIn) return redirectBrowser(response, location)
    const { redirect, uiLocales } = signedIn
    const locale = localeOf({ uiLocales, acceptLanguage: request.headers['accept-language'] })
    sendAuthorizationResponse(response, redirect.response, { setCookies: redirect.setCookies, locale, secure })
  }

  const methods = new Map([
    ['GET', get],
    ['POST', post],
  ])

  return async (request, response, requestId) => {
    try {
      const handle = methods.get(request.method ?? '')
      if (!handle) throw new Refusal('invalid_request', 405, { headers: { Allow: [...methods.keys()].join(', ') } })
      await handle(request, response)
    } catch (error) {
      const refusal = refusalOf(error)
      const { problem, status, headers } = refusal
      if (status >= 500) logFault(logger, refusal, { requestId }, 'the answer of a provider was not taken')
      if (response.headersSent || response.destroyed) return void response.destroy()
      const branding = await brandings.of(undefined)
      const locale = localeOf({ acceptLanguage: request.headers['accept-language'] })
      sendPage(response, status, errorPage({ locale, problem, requestId }), { headers, secure, branding })
    }
  }
}

const parametersOf = (form: Form): URLSearchParams => {
  const parameters = new URLSearchParams()
  for (const [name, values] of form) for (const value of values) parameters.append(name, value)
  return parameters
}

interface Answer {
  connectorId: string
  parameters: URLSearchParams
  visitor: Visitor
}

type Answered =
  /** `location`: a page of ours. `signedIn`: it is over, and this is the answer to the client. */
  { outcome: 'go_on'; location: string; signedIn?: SignedIn | undefined } | { outcome: 'refused' | 'other_browser' }

interface SignedIn {
  redirect: Redirect
  uiLocales: Interaction['request']['uiLocales']
}

const refusals: Readonly<Record<Exclude<Answered['outcome'], 'go_on'>, PageProblem>> = {
  refused: 'invalid_request',
  other_browser: 'other_browser',
}

/** Throws 404 for a path that is no connector's. */
const placeOf = ({ url = '/' }: IncomingMessage) => {
  const { pathname, searchParams } = new URL(url, 'http://issuer')
  const connectorId = /^\/callback\/([\w-]{1,128})$/.exec(pathname)?.[1]
  if (connectorId === undefined) throw new Refusal('not_found', 404)
  return { connectorId, parameters: searchParams, pathname: callbackPath(connectorId) }
}
