import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Database } from '../../../platform/database/database.ts'
import type { Logger } from '../../../platform/logger.ts'
import { sha256 } from '../../../platform/secret.ts'
import type { RequestOrigin } from '../../base/client-address.ts'
import type { Cookies } from '../../base/cookies.ts'
import type { Hmac } from '../../base/hmac-keys-store.ts'
import { isFromOwnPage } from '../../base/same-origin.ts'
import { findAccount } from '../../interaction/person-store.ts'
import { type Brandings, finishedPage, type LocaleOf, logoutPage, signedOutPage } from '../../pages/index.ts'
import type { VerifyIdTokenHint } from '../../tokens/id-token-hint.ts'
import { type FoundSession, findSession } from '../../tokens/sessions/session-store.ts'
import { tokenDigest } from '../../tokens/token-digest.ts'
import type { Endpoint } from '../answers.ts'
import {
  type AuthorizationParameters,
  onlyValueOf,
  readAuthorizationParameters,
  readQueryParameters,
} from '../authorization/authorization-parameters.ts'
import { isFromAnotherSite } from '../authorization/from-another-site.ts'
import { type PushedRequests, postedPrefix } from '../authorization/pushed-requests.ts'
import { findLogoutClient, isAskedByClient } from './end-session-store.ts'
import { createReadLogoutRequest, isRefused, type LogoutRequest, returnLocation } from './logout-request.ts'
import { createSignOut } from './sign-out.ts'
import { pageEndpoint, type Visit } from './visit.ts'

export interface EndSessionDependencies {
  database: Pick<Database, 'query' | 'transaction'>
  /** The publisher of the outbox. */
  events: { wake(): void }
  verifyIdTokenHint: VerifyIdTokenHint
  pushedRequests: Pick<PushedRequests, 'post' | 'use'>
  cookies: Cookies
  hmac: Hmac
  brandings: Brandings
  localeOf: LocaleOf
  /** `BASE_URL`. */
  baseUrl: string
  originOf(request: IncomingMessage): RequestOrigin
  /** Throws 429 when too many requests of the address are to be kept. */
  limitStored?: ((address: string) => Promise<void>) | undefined
  logger: Logger
}

export interface EndSessionEndpoints {
  /** `GET|POST /oidc/session/end` */
  endSession: Endpoint
  /** `POST /oidc/session/end/confirm` */
  confirmEndSession: Endpoint
}

const path = '/oidc/session/end'
const confirmPath = `${path}/confirm`

/**
 * Signing out (OpenID Connect RP-Initiated Logout 1.0). Anybody can lead a browser here, so the person is asked first,
 * unless the client shows that it was given the session. Without a session there is nothing to ask.
 */
export const createEndSessionEndpoints = (dependencies: EndSessionDependencies): EndSessionEndpoints => {
  const { database, events, verifyIdTokenHint, pushedRequests, cookies, hmac, originOf, limitStored, logger } =
    dependencies
  const { query } = database
  const { origin: ownOrigin, protocol } = new URL(dependencies.baseUrl)
  const signOut = createSignOut({ database, events, logger })
  const readLogoutRequest = createReadLogoutRequest({
    verifyIdTokenHint,
    findClient: (clientId) => findLogoutClient(query, clientId),
  })

  const endSession = async (visit: Visit) => {
    const { request } = visit
    const sent = await readAuthorizationParameters(request)
    if (request.method === 'POST' && isFromAnotherSite(request, ownOrigin)) return comeByGet(visit, sent)
    const parameters = await keptOr(sent)
    if (!parameters) return visit.refuse(400, { problem: 'invalid_request_uri' })
    await decide(parameters, visit)
  }

  const decide = async (parameters: AuthorizationParameters, first: Visit) => {
    const uiLocales = onlyValueOf(parameters, 'ui_locales')
    const visit = first.inLanguageOf(uiLocales)
    const asked = await readLogoutRequest(parameters)
    if (isRefused(asked)) return visit.refuse(400, asked)
    const session = await sessionOf(visit)
    if (!session) return leave(visit, asked)
    if (!(await isProven(session, asked))) return ask(visit, asked, session, uiLocales)
    await signOut({ session, ...about(visit, asked), everywhere: false, wasAsked: false })
    leave(visit, asked, cleared())
  }

  const confirm = async (first: Visit) => {
    const { request } = first
    if (!isFromOwnPage(request, ownOrigin)) return first.refuse(403, { problem: 'invalid_form' })
    const form = await readAuthorizationParameters(request)
    const parameters = readQueryParameters(request)
    const visit = first.inLanguageOf(onlyValueOf(parameters, 'ui_locales'))
    const asked = await readLogoutRequest(parameters)
    if (isRefused(asked)) return visit.refuse(400, asked)
    const session = await sessionOf(visit)
    // Sent twice, or ended elsewhere meanwhile: it is as the person wants it.
    if (!session) return visit.redirect(returnLocation(asked) ?? ownPage(asked))
    if (!isEqual(onlyValueOf(form, 'xsrf') ?? '', csrfOf(session, asked)))
      return visit.refuse(403, { problem: 'invalid_form' })
    if (onlyValueOf(form, 'logout') !== 'yes') return stay(visit, asked)
    const everywhere = onlyValueOf(form, 'everywhere') === 'yes'
    await signOut({ session, ...about(visit, asked), everywhere, wasAsked: true })
    visit.redirect(returnLocation(asked) ?? ownPage(asked), cleared())
  }

  /** The POST of another site brings no cookies. What it asks for is kept until the browser comes again, by GET. */
  const comeByGet = async (visit: Visit, parameters: AuthorizationParameters) => {
    await limitStored?.(originOf(visit.request).ip)
    const requestUri = await pushedRequests.post(parameters)
    visit.redirect(`${path}?${new URLSearchParams({ request_uri: requestUri })}`)
  }

  /** Undefined when what was kept was taken, or is too old. */
  const keptOr = async (sent: AuthorizationParameters): Promise<AuthorizationParameters | undefined> => {
    const requestUri = onlyValueOf(sent, 'request_uri')
    if (requestUri?.startsWith(postedPrefix) !== true) return sent
    return (await pushedRequests.use(requestUri, { clientId: '', browser: '' }))?.parameters
  }

  const sessionOf = async ({ request }: Visit): Promise<FoundSession | undefined> => {
    const cookie = cookies.read(request, 'session')
    return cookie === undefined ? undefined : findSession(query, cookie)
  }

  const isProven = async (session: FoundSession, { client, hint }: LogoutRequest): Promise<boolean> => {
    if (!client || (hint && hint.userId !== session.userId)) return false
    return isAskedByClient(query, { sessionId: session.id, clientId: client.id, sid: hint?.sid })
  }

  const ask = async (visit: Visit, asked: LogoutRequest, session: FoundSession, uiLocales: string | undefined) => {
    const page = logoutPage({
      locale: visit.locale,
      client: asked.client,
      account: await findAccount(query, session.userId),
      action: withQuery(confirmPath, {
        client_id: asked.client?.id,
        post_logout_redirect_uri: asked.returnUri,
        state: asked.state,
        ui_locales: uiLocales,
      }),
      csrf: csrfOf(session, asked),
    })
    // Existing clients look for it in the answer to a GET.
    const entityTag = `"${sha256(page.content).toString('base64url').slice(0, 22)}"`
    visit.show(200, page, visit.request.method === 'GET' ? { headers: { ETag: entityTag } } : {})
  }

  /** Bound to the session and to what was asked for. */
  const csrfOf = (session: FoundSession, { client, returnUri, state }: LogoutRequest) =>
    hmac('csrf', 'logout', session.id, JSON.stringify([client?.id, returnUri, state])).toString('base64url')

  const about = ({ request }: Visit, { client }: LogoutRequest) => {
    const browser = cookies.read(request, 'browser')
    return {
      clientId: client?.id,
      browser: browser === undefined ? undefined : tokenDigest('browser', browser),
      origin: originOf(request),
    }
  }

  const cleared = () => [cookies.clear('session')]

  const leave = (visit: Visit, asked: LogoutRequest, setCookies: readonly string[] = []) => {
    const location = returnLocation(asked)
    if (location !== undefined) return visit.redirect(location, setCookies)
    visit.show(200, signedOutPage({ locale: visit.locale, client: asked.client }), { setCookies })
  }

  const options = {
    secure: protocol === 'https:',
    brandings: dependencies.brandings,
    localeOf: dependencies.localeOf,
    logger,
  }
  return { endSession: pageEndpoint(options, endSession), confirmEndSession: pageEndpoint(options, confirm) }
}

/** No redirect, which would tell the client that its user has signed out; but a way back. */
const stay = (visit: Visit, { client, returnUri }: LogoutRequest) =>
  visit.show(200, finishedPage({ locale: visit.locale, client, wayOn: returnUri }))

/** Without a session it says that one is signed out; a reload sends no form again. */
const ownPage = ({ client }: LogoutRequest): string => withQuery(path, { client_id: client?.id })

const withQuery = (address: string, parameters: Readonly<Record<string, string | undefined>>): string => {
  const given = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) given.append(name, value)
  return given.size === 0 ? address : `${address}?${given}`
}

const isEqual = (one: string, other: string): boolean => {
  const [presented, expected] = [Buffer.from(one), Buffer.from(other)]
  return presented.length === expected.length && timingSafeEqual(presented, expected)
}
