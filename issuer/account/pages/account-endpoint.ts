import type { IncomingMessage, ServerResponse } from 'node:http'
import type { EventRequest } from '../../../events/outbox.ts'
import type { Query } from '../../../platform/database/database.ts'
import type { Logger } from '../../../platform/logger.ts'
import { AppError } from '../../../platform/problem.ts'
import type { Cookies } from '../../base/cookies.ts'
import { logFault } from '../../base/errors/log-fault.ts'
import { OAuthError } from '../../base/errors/problems.ts'
import type { Hmac } from '../../base/hmac-keys-store.ts'
import { type Form, onlyValue, readForm } from '../../base/read-form.ts'
import { isFromOwnPage } from '../../base/same-origin.ts'
import type { SignInExperience } from '../../directory/sign-in-experience/sign-in-experience.ts'
import { accountClient, accountClientId, accountRequest } from '../../interaction/account-client.ts'
import type { Interactions } from '../../interaction/interactions.ts'
import { findAccount } from '../../interaction/person-store.ts'
import { redirectBrowser } from '../../interaction/send-authorization-response.ts'
import { keepSessionFresh } from '../../interaction/sign-in-session.ts'
import type { Visitor, VisitorOf } from '../../interaction/visitor.ts'
import { type AccountShell, accountSignedOutPage, type PlainMessage } from '../../pages/account/index.ts'
import { type Brandings, errorPage, type LocaleOf, type Page, sendPage } from '../../pages/index.ts'
import { Refusal, refusalOf } from '../../pages/refusal.ts'
import { findSession } from '../../tokens/sessions/session-store.ts'
import type { AccountOperations } from '../operations/index.ts'
import type { AccountPerson } from '../person.ts'
import { findReauthentication } from '../reauthentication.ts'
import { readAccountSettings } from '../settings.ts'
import type { AccountAnswer, AccountPage, AccountVisit, PageFederation } from './account-page.ts'
import { confirmPath } from './confirm.ts'
import { formTokenOf, isEqual, noticeTokenOf } from './form-token.ts'
import { menuOf } from './menu.ts'
import { pages } from './pages.ts'

export type PageEndpoint = (request: IncomingMessage, response: ServerResponse, requestId: string) => Promise<void>

export interface AccountEndpointDependencies {
  query: Query
  hmac: Hmac
  operations: AccountOperations
  federation: PageFederation
  interactions: Interactions
  cookies: Cookies
  visitorOf: VisitorOf
  experience: () => SignInExperience
  brandings: Brandings
  localeOf: LocaleOf
  /** Where browsers reach the issuer. */
  baseUrl: string
  logger: Logger
}

const byPath: ReadonlyMap<string, AccountPage> = new Map(pages.map((page) => [page.path, page]))

/** A request for one of the pages, by somebody who is signed in. */
interface Arrival {
  request: IncomingMessage
  response: ServerResponse
  visitor: Visitor
  visit: AccountVisit
  page: AccountPage
  setCookies: readonly string[]
}

/**
 * `GET|POST /account…`: GET shows a page, POST takes what one of its forms says. Who is not signed in does that first,
 * and comes back to the page that they wanted.
 */
export const createAccountEndpoint = (dependencies: AccountEndpointDependencies): PageEndpoint => {
  const { query, hmac, operations, interactions, cookies, visitorOf, experience } = dependencies
  const { brandings, localeOf, baseUrl, logger } = dependencies
  const { origin: ownOrigin, protocol, hostname } = new URL(baseUrl)
  const secure = protocol === 'https:'

  const localeFor = ({ acceptLanguage }: Visitor) => localeOf({ acceptLanguage })

  /** Undefined: nobody is signed in. */
  const arrive = async (
    request: IncomingMessage,
    response: ServerResponse,
    requestId: string,
    page: AccountPage,
  ): Promise<Arrival | undefined> => {
    const visitor = visitorOf(request)
    const session = visitor.session === undefined ? undefined : await findSession(query, visitor.session)
    if (!session) return undefined
    const { ip, userAgent } = visitor.origin
    const person: AccountPerson = {
      userId: session.userId,
      sessionId: session.id,
      sid: undefined,
      clientId: undefined,
      scopes: undefined,
      amr: session.amr,
      acr: session.acr,
      authTime: session.authenticatedAt,
      ip,
      userAgent,
      acceptLanguage: visitor.acceptLanguage,
    }
    const settings = await readAccountSettings(query)
    const known = { settings, experience: experience() }
    if (!settings.enabled || page.isShown?.(known) === false) throw new Refusal('not_found', 404)
    const account = await findAccount(query, session.userId)
    // Deleted between the two reads.
    if (!account) return undefined
    const isDue = page.needsConfirmation === true && !(await findReauthentication(query, person))
    const { profile } = await operations.profile.get(person)
    const timeZone = profile?.zoneinfo || undefined
    const shell: AccountShell = {
      account,
      locale: localeFor(visitor),
      menu: menuOf(pages, known),
      path: page.path,
      title: page.title,
      csrf: formTokenOf(hmac, session.id, page.path),
      notice: noticeIn(request, session.id, page.path),
      confirmPath: isDue ? confirmPath(page.path) : undefined,
      timeZone,
    }
    const visit: AccountVisit = {
      ...{
        query,
        operations,
        federation: dependencies.federation,
        person,
        session,
        ...known,
        shell,
        hostname,
        requestId,
      },
      parameters: new URL(request.url ?? '', ownOrigin).searchParams,
      context: (operationId) => ({
        operationId,
        auditArea: 'Account',
        person,
        caller: { subject: person.userId, clientId: accountClientId, scopes: new Set() },
        request: eventRequestOf(page, person, request),
        fields: [],
      }),
    }
    const setCookies = await keepSessionFresh(query, cookies, session, visitor)
    return { request, response, visitor, visit, page, setCookies }
  }

  /** Signed, so that no link makes a page say what is not true. */
  const noticeIn = ({ url = '' }: IncomingMessage, sessionId: string, path: string): PlainMessage | undefined => {
    const parameters = new URL(url, ownOrigin).searchParams
    const [notice, token] = [parameters.get('done') ?? '', parameters.get('by') ?? '']
    // What the token proves.
    return isEqual(token, noticeTokenOf(hmac, sessionId, path, notice)) ? (notice as PlainMessage) : undefined
  }

  const send = async (
    { response, setCookies }: Arrival,
    page: Page,
    { status = 200, setCookies: more = [] }: { status?: number; setCookies?: readonly string[] } = {},
  ) =>
    sendPage(response, status, page, {
      secure,
      setCookies: [...setCookies, ...more],
      branding: await brandings.of(undefined),
    })

  const signIn = async (
    request: IncomingMessage,
    response: ServerResponse,
    { path }: AccountPage,
    wasSignedIn: boolean,
  ) => {
    const visitor = visitorOf(request)
    const gaveUp = new URL(request.url ?? '', ownOrigin).searchParams.has('error')
    if (wasSignedIn || gaveUp || visitor.isEmbedded) {
      const page = accountSignedOutPage({ locale: localeFor(visitor), path, wasSignedIn })
      return sendPage(response, wasSignedIn ? 401 : 200, page, { secure, branding: await brandings.of(undefined) })
    }
    const begun = await interactions
      .begin(accountRequest(path), accountClient(path), visitor)
      .catch((error: unknown) => {
        if (!(error instanceof OAuthError) || error.status !== 429) throw error
        throw new Refusal('too_many_requests', 429, { headers: error.headers })
      })
    redirectBrowser(response, begun.kind === 'page' ? begun.location : path, begun)
  }

  const get = async (request: IncomingMessage, response: ServerResponse, requestId: string, page: AccountPage) => {
    const arrival = await arrive(request, response, requestId, page)
    if (!arrival) return signIn(request, response, page, false)
    await send(arrival, await page.show(arrival.visit))
  }

  const post = async (request: IncomingMessage, response: ServerResponse, requestId: string, page: AccountPage) => {
    if (!isFromOwnPage(request, ownOrigin)) throw new Refusal('invalid_form', 403)
    const form = await readForm(request)
    const arrival = await arrive(request, response, requestId, page)
    if (!arrival) return signIn(request, response, page, true)
    if (!isEqual(onlyValue(form, 'csrf') ?? '', arrival.visit.shell.csrf)) throw new Refusal('invalid_form', 403)
    await submit(arrival, form)
  }

  const submit = async (arrival: Arrival, form: Form) => {
    const { request, response, visit, page, setCookies } = arrival
    const { person, shell } = visit
    const name = onlyValue(form, 'choice') ?? ''
    const choice = page.choices && Object.hasOwn(page.choices, name) ? page.choices[name] : undefined
    if (!choice) throw new Refusal('invalid_form', 400)
    const redirect = (location: string, more: readonly string[] = []) =>
      redirectBrowser(response, location, { setCookies: [...setCookies, ...more] })
    const told = (notice: PlainMessage, path: string) => {
      const by = noticeTokenOf(hmac, person.sessionId, path, notice)
      return `${path}?${new URLSearchParams({ done: notice, by })}`
    }
    const answer: AccountAnswer = {
      ...visit,
      form,
      context: (operationId) => ({
        ...visit.context(operationId),
        fields: [...form.keys()].filter((field) => field !== 'csrf'),
      }),
      told,
      done: (notice, path = shell.path) => redirect(notice ? told(notice, path) : path),
      goTo: (location) => redirect(location),
      leave: redirect,
      clearSession: cookies.clear('session'),
      again: async (entered, status = 400) => send(arrival, await page.show(visit, entered), { status }),
      send: (shown, options) => send(arrival, shown, options),
      download(file, content) {
        for (const cookie of setCookies) response.appendHeader('Set-Cookie', cookie)
        response.writeHead(200, {
          'Content-Type': 'application/json; charset=utf-8',
          'Content-Disposition': `attachment; filename="${file}"`,
          'Cache-Control': 'no-store',
          'X-Content-Type-Options': 'nosniff',
          'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
        })
        response.end(JSON.stringify(content, null, 2))
      },
    }
    try {
      await choice(answer)
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      if (error.code === 'auth.unauthorized') return signIn(request, response, page, true)
      // The ten minutes passed while the page was open.
      if (error.code === 'verification_record.permission_denied') return redirect(confirmPath(page.path))
      if (error.code.startsWith('account_center.')) return redirect(page.path)
      throw error
    }
  }

  const methods = new Map([
    ['GET', get],
    ['HEAD', get],
    ['POST', post],
  ])

  return async (request, response, requestId) => {
    try {
      const handle = methods.get(request.method ?? '')
      if (!handle) throw new Refusal('invalid_request', 405, { headers: { Allow: [...methods.keys()].join(', ') } })
      const page = byPath.get((request.url ?? '').split('?', 1)[0] ?? '')
      if (!page) throw new Refusal('not_found', 404)
      await handle(request, response, requestId, page)
    } catch (error) {
      const { problem, status, headers, cause } = refusalOf(error)
      if (status >= 500)
        logFault(logger, new Refusal(problem, status, { cause }), { requestId }, 'an account page failed')
      if (response.headersSent || response.destroyed) return void response.destroy()
      const branding = await brandings.of(undefined)
      const locale = localeOf({ acceptLanguage: request.headers['accept-language'] })
      sendPage(response, status, errorPage({ locale, problem, requestId }), { headers, secure, branding })
    }
  }
}

const eventRequestOf = (
  { path }: AccountPage,
  { ip, userAgent }: AccountPerson,
  { method = 'POST' }: IncomingMessage,
): EventRequest => ({ ip, userAgent, method, path, matchedRoute: path, params: {}, status: 303 })
