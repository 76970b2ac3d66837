import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { EventRequest } from '../../events/outbox.ts'
import type { Query } from '../../platform/database/database.ts'
import { isDatabaseUnavailable } from '../../platform/database/database-unavailable.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import { AppError } from '../../platform/problem.ts'
import { logFault } from '../base/errors/log-fault.ts'
import type { Hmac } from '../base/hmac-keys-store.ts'
import { isFromOwnPage } from '../base/same-origin.ts'
import { asksForOrganizations } from '../interaction/consent.ts'
import { findMemberships } from '../interaction/consent-facts-store.ts'
import type { Finish, Proceeded } from '../interaction/finish.ts'
import { readIdentifier } from '../interaction/identifier.ts'
import type { InteractionState } from '../interaction/interaction-state.ts'
import { findInteraction, type Interaction } from '../interaction/interaction-store.ts'
import { interactionPath } from '../interaction/interactions.ts'
import { nextStep, type Situation, whoIsIt } from '../interaction/next-step.ts'
import type { PasswordAttempt, PasswordProofs } from '../interaction/password-proof.ts'
import { redirectBrowser, sendAuthorizationResponse } from '../interaction/send-authorization-response.ts'
import { applicationLink, startAgainLink } from '../interaction/start-again.ts'
import type { Visitor, VisitorOf } from '../interaction/visitor.ts'
import {
  type Brandings,
  errorPage,
  finishedPage,
  type Locale,
  type Page,
  type PageProblem,
  pickLocale,
  sendPage,
} from '../pages/index.ts'
import { findConsent } from '../tokens/consents/consent-store.ts'
import { findSession } from '../tokens/sessions/session-store.ts'
import { tokenDigest } from '../tokens/token-digest.ts'
import { type FormPage, type FormToken, formTokenOf, readFormToken } from './form-token.ts'
import { type Form, FormError, onlyValue, readForm } from './read-form.ts'
import { type Entered, stepPages } from './step-pages.ts'

export type PageEndpoint = (request: IncomingMessage, response: ServerResponse, requestId: string) => Promise<void>

export interface SignInEndpointDependencies {
  query: Query
  hmac: Hmac
  passwordProofs: PasswordProofs
  finish: Finish
  visitorOf: VisitorOf
  brandings: Brandings
  /** Where browsers reach the issuer. */
  baseUrl: string
  logger: Logger
  metrics: Metrics
}

/** Of a password, in bytes of UTF-8. */
const maxPasswordBytes = 1_024

/** What a request is answered with instead of going on. */
class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly problem: PageProblem
  readonly status: number
  readonly headers: Record<string, string>

  constructor(
    problem: PageProblem,
    status: number,
    { headers = {}, cause }: { headers?: Record<string, string>; cause?: unknown } = {},
  ) {
    super(problem, { cause })
    this.problem = problem
    this.status = status
    this.headers = headers
  }
}

/** A request for the pages of one interaction, by the browser that it belongs to. */
interface Visit {
  request: IncomingMessage
  response: ServerResponse
  requestId: string
  visitor: Visitor & { browser: string }
  interaction: Interaction
  locale: Locale
}

/**
 * `GET|POST /sign-in/<id>`: GET shows the step that is due, POST takes what its form says and goes on, and the last
 * step leads back to the client. `GET /sign-in` is for whoever comes by themselves.
 */
export const createSignInEndpoint = (dependencies: SignInEndpointDependencies): PageEndpoint => {
  const { query, hmac, passwordProofs, finish, visitorOf, brandings, baseUrl, logger, metrics } = dependencies
  const counter = metrics.counter(
    'surrogate_sign_ins_total',
    'Attempts to sign in by how they were proven and came out.',
    ['proof', 'outcome'],
  )
  const { origin: ownOrigin, protocol } = new URL(baseUrl)
  const secure = protocol === 'https:'

  const visitOf = async (request: IncomingMessage, response: ServerResponse, requestId: string): Promise<Visit> => {
    const id = idOf(request.url)
    if (id === undefined) throw new Refusal('not_found', 404)
    const visitor = visitorOf(request)
    const interaction = await findInteraction(query, id)
    const { browser } = visitor
    // An unknown one and somebody else's are told apart by nothing.
    if (
      !interaction ||
      browser === undefined ||
      !timingSafeEqual(tokenDigest('browser', browser), interaction.browser)
    ) {
      throw new Refusal('other_browser', 400)
    }
    const { uiLocales } = interaction.request
    const locale = pickLocale({ uiLocales, acceptLanguage: visitor.acceptLanguage })
    return { request, response, requestId, visitor: { ...visitor, browser }, interaction, locale }
  }

  const send = async ({ response, interaction }: Visit, status: number, page: Page) =>
    sendPage(response, status, page, { secure, branding: await brandings.of(interaction.client.id) })

  const situationOf = async ({ interaction, visitor }: Visit): Promise<Situation> => {
    const { client, request, proofs, state } = interaction
    const session = visitor.session === undefined ? undefined : await findSession(query, visitor.session)
    const userId = whoIsIt({ session, proofs })
    const consent =
      client.isThirdParty && userId !== undefined ? await findConsent(query, userId, client.id) : undefined
    return { request, client, session, proofs, consent, state }
  }

  /** What is due, or, where nothing is, the way back to the client. */
  const show = async (visit: Visit, { status = 200, entered }: { status?: number; entered?: Entered } = {}) => {
    const { interaction, locale } = visit
    const situation = await situationOf(visit)
    const step = nextStep(situation)
    if (step.step === 'done' || step.step === 'denied') return goOn(visit)
    const page = await stepPages[step.step](whoIsIt(situation))({
      query,
      interaction,
      situation,
      step,
      locale,
      action: interactionPath(interaction.id),
      tokenFor: (token: FormToken) => formTokenOf(hmac, placeOf(interaction), token),
      entered,
    })
    // The person was deleted between the two reads: whoever looks again sees it.
    if (!page) return redirectBrowser(visit.response, interactionPath(interaction.id))
    await send(visit, status, page)
  }

  /** It is over: finished, or its time is. */
  const showEnd = async (visit: Visit, status?: number) => {
    const { requestId, interaction, locale } = visit
    const { client, request, isFinished } = interaction
    const told = { name: client.name, logoUri: client.logoUri }
    if (isFinished) {
      return send(visit, status ?? 200, finishedPage({ locale, client: told, wayOn: applicationLink(request) }))
    }
    const [again, home] = [startAgainLink(request), applicationLink(request)]
    const toApplication = home === undefined ? undefined : { href: home, kind: 'application' as const }
    const wayOn = again === undefined ? toApplication : { href: again, kind: 'start_again' as const }
    await send(visit, status ?? 400, errorPage({ locale, problem: 'expired', requestId, client: told, wayOn }))
  }

  const answer: Readonly<Record<Proceeded['kind'], (visit: Visit, proceeded: Proceeded) => Promise<void> | void>> = {
    redirect({ response, locale }, proceeded) {
      if (proceeded.kind !== 'redirect') return
      const { response: led, setCookies } = proceeded.redirect
      sendAuthorizationResponse(response, led, { setCookies, locale, secure })
    },
    // Post, redirect, get: reloading the next page sends nothing again.
    page: ({ response, interaction }) => redirectBrowser(response, interactionPath(interaction.id)),
    async over(visit) {
      const now = await findInteraction(query, visit.interaction.id)
      if (!now) throw new Refusal('other_browser', 400)
      await showEnd({ ...visit, interaction: now }, now.isFinished ? 403 : 400)
    },
    client_gone() {
      throw new Refusal('application_unavailable', 400)
    },
  }

  const goOn = async (visit: Visit, decision?: InteractionState) => {
    const { interaction, visitor, request } = visit
    const proceeded = await finish.proceed(interaction.id, visitor, eventRequestOf(visit, request), decision)
    await answer[proceeded.kind](visit, proceeded)
  }

  /** One row for each page: what its buttons mean. */
  const submitted: Readonly<Record<FormPage, (visit: Visit, form: Form, token: FormToken) => Promise<void>>> = {
    async sign_in(visit, form) {
      if (onlyValue(form, 'choice') === 'cancel') return goOn(visit, { isCancelled: true })
      const identifier = onlyValue(form, 'identifier') ?? ''
      const password = onlyValue(form, 'password') ?? ''
      const keep = onlyValue(form, 'keep') === 'yes'
      const again = (error: Entered['error'], status = 400, minutes?: number) =>
        show(visit, { status, entered: { identifier, keep, error, minutes } })
      if (identifier.trim() === '') return again('identifier_missing')
      if (password === '') return again('password_missing')
      const read = readIdentifier(identifier)
      if (!read || Buffer.byteLength(password) > maxPasswordBytes) return again('too_long')
      const { interaction, visitor, request } = visit
      const attempt = await passwordProofs.prove(
        interaction,
        visitor,
        { identifier: read, password, keep },
        { ...eventRequestOf(visit, request), status: 400 },
      )
      counter.inc({ proof: 'password', outcome: attempt.outcome })
      const outcomes: Readonly<Record<PasswordAttempt['outcome'], () => Promise<void>>> = {
        verified: () => goOn(visit),
        over: () => goOn(visit),
        invalid_credentials: () => again('invalid_credentials'),
        locked: () => again('locked', 400, attempt.outcome === 'locked' ? attempt.minutes : undefined),
        too_many_requests: () => again('too_many_requests', 429),
        suspended: () => Promise.reject(new Refusal('user_suspended', 403)),
      }
      return outcomes[attempt.outcome]()
    },
    async select_account(visit, form, { subject }) {
      const isSame = onlyValue(form, 'choice') === 'continue'
      await goOn(visit, { account: isSame ? { sessionId: subject } : false })
    },
    async consent(visit, form, { subject }) {
      const choice = onlyValue(form, 'choice')
      if (choice === 'another') return goOn(visit, { account: false })
      const isAllowed = choice === 'allow'
      const asked = asksForOrganizations(visit.interaction.request)
      const organizationIds = isAllowed && asked ? [...new Set(form.get('organizationIds') ?? [])] : []
      if (organizationIds.length > 0) {
        const memberships = new Set((await findMemberships(query, subject)).map(({ id }) => id))
        if (!organizationIds.every((id) => memberships.has(id))) throw new Refusal('invalid_form', 400)
      }
      await goOn(visit, { consent: { userId: subject, isAllowed, organizationIds } })
    },
  }

  const post = async (request: IncomingMessage, response: ServerResponse, requestId: string) => {
    if (!isFromOwnPage(request, ownOrigin)) throw new Refusal('invalid_form', 403)
    const form = await readForm(request)
    const visit = await visitOf(request, response, requestId)
    const { interaction } = visit
    const token = readFormToken(hmac, placeOf(interaction), onlyValue(form, 'csrf'))
    if (!token) throw new Refusal('invalid_form', 403)
    // Sent twice: the same answer, for some seconds.
    if (!interaction.isOpen) return goOn(visit)
    await submitted[token.page](visit, form, token)
  }

  const get = async (request: IncomingMessage, response: ServerResponse, requestId: string) => {
    if (pathOf(request.url) === '/sign-in') throw new Refusal('no_sign_in', 400)
    const visit = await visitOf(request, response, requestId)
    if (visit.interaction.isOpen) await show(visit)
    else await showEnd(visit)
  }

  const methods = new Map([
    ['GET', get],
    ['HEAD', get],
    ['POST', post],
  ])

  return async (request, response, requestId) => {
    const locale = pickLocale({ acceptLanguage: request.headers['accept-language'] })
    try {
      const handle = methods.get(request.method ?? '')
      if (!handle) throw new Refusal('invalid_request', 405, { headers: { Allow: [...methods.keys()].join(', ') } })
      await handle(request, response, requestId)
    } catch (error) {
      const refusal = refusalOf(error)
      if (refusal.status >= 500) logFault(logger, refusal, { requestId }, 'a page could not be shown')
      if (response.headersSent || response.destroyed) return void response.destroy()
      const { problem, status, headers } = refusal
      const branding = await brandings.of(undefined)
      sendPage(response, status, errorPage({ locale, problem, requestId }), { headers, secure, branding })
    }
  }
}

const pathOf = (url = '/'): string => url.split('?', 1)[0] ?? url

const idOf = (url: string | undefined): string | undefined => /^\/sign-in\/([0-9a-z]{21})$/.exec(pathOf(url))?.[1]

const placeOf = ({ id, browser }: Interaction) => ({ browser, interactionId: id })

const eventRequestOf = (
  { interaction: { id }, visitor }: Visit,
  { method = 'POST' }: IncomingMessage,
): EventRequest => ({
  ip: visitor.origin.ip,
  userAgent: visitor.origin.userAgent,
  method,
  path: interactionPath(id),
  matchedRoute: interactionPath(':id'),
  params: { id },
  status: 303,
})

const refusalOf = (error: unknown): Refusal => {
  if (error instanceof Refusal) return error
  if (error instanceof FormError) {
    // What is left of the body is not worth reading.
    const headers: Record<string, string> = error.status === 413 ? { Connection: 'close' } : {}
    return new Refusal('invalid_form', error.status, { headers })
  }
  if (isDatabaseUnavailable(error)) {
    return new Refusal('temporarily_unavailable', 503, { headers: { 'Retry-After': '5' }, cause: error })
  }
  if (error instanceof AppError && error.status === 503) {
    return new Refusal('temporarily_unavailable', 503, { headers: error.headers })
  }
  return new Refusal('server_error', 500, { cause: error })
}
