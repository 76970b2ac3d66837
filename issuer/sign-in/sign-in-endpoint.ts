import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { EventRequest } from '../../events/outbox.ts'
import type { Query } from '../../platform/database/database.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { Release, WithPermitOf } from '../../platform/semaphore.ts'
import { logFault } from '../base/errors/log-fault.ts'
import type { Hmac } from '../base/hmac-keys-store.ts'
import { type Form, onlyValue, readForm } from '../base/read-form.ts'
import { isFromOwnPage } from '../base/same-origin.ts'
import type { SignInExperience } from '../directory/sign-in-experience/sign-in-experience.ts'
import { accountClientId } from '../interaction/account-client.ts'
import type { Proceeded } from '../interaction/finish.ts'
import { keepDecision } from '../interaction/interaction-changes-store.ts'
import { interactionPath } from '../interaction/interaction-path.ts'
import type { InteractionState } from '../interaction/interaction-state.ts'
import { findInteraction, type Interaction } from '../interaction/interaction-store.ts'
import type { InteractionOperations } from '../interaction/operations.ts'
import { redirectBrowser, sendAuthorizationResponse } from '../interaction/send-authorization-response.ts'
import { applicationLink, wayOnAfter } from '../interaction/start-again.ts'
import type { StepName } from '../interaction/step.ts'
import type { Visitor, VisitorOf } from '../interaction/visitor.ts'
import {
  accountName,
  type Brandings,
  deviceDonePage,
  errorPage,
  finishedPage,
  type Locale,
  type LocaleOf,
  type Page,
  type PageProblem,
  sendPage,
} from '../pages/index.ts'
import { Refusal, refusalOf } from '../pages/refusal.ts'
import { tokenDigest } from '../tokens/token-digest.ts'
import { type FormToken, formTokenOf, readFormToken } from './forms/form-token.ts'
import { signInsCounter } from './sign-ins-counter.ts'
import { steps } from './steps/index.ts'
import type { SignInStep } from './steps/step.ts'

export type PageEndpoint = (request: IncomingMessage, response: ServerResponse, requestId: string) => Promise<void>

export interface SignInEndpointDependencies {
  query: Query
  hmac: Hmac
  operations: InteractionOperations
  /** For forms with a password. */
  inTurn: WithPermitOf
  visitorOf: VisitorOf
  settings: () => SignInExperience
  brandings: Brandings
  localeOf: LocaleOf
  /** Where they are sent who come without an interaction; null: to a page that says so. */
  unknownSessionRedirectUrl: () => string | null
  /** Where browsers reach the issuer. */
  baseUrl: string
  /** Of tokens and of discovery. */
  issuer: string
  logger: Logger
  metrics: Metrics
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
  const { query, hmac, operations, inTurn, visitorOf, settings, brandings, localeOf } = dependencies
  const { baseUrl, issuer, logger, metrics } = dependencies
  const counter = signInsCounter(metrics)
  const { origin: ownOrigin, protocol, hostname } = new URL(baseUrl)
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
    const locale = localeOf({ uiLocales, acceptLanguage: visitor.acceptLanguage })
    return {
      ...{ request, response, requestId, locale },
      visitor: { ...visitor, browser },
      interaction: { ...interaction, client: inWordsOf(locale, interaction.client) },
    }
  }

  const send = async ({ response, interaction }: Visit, status: number, page: Page) =>
    sendPage(response, status, page, { secure, branding: await brandings.of(interaction.client.id) })

  /** What is due, or, where nothing is, the way back to the client. */
  const show = async (visit: Visit, again?: { status: number; page: StepName; entered: unknown }) => {
    const { interaction, locale, visitor, requestId } = visit
    const { situation, step } = await operations.standingOf(query, interaction, visitor)
    if (step.step === 'done' || step.step === 'denied') return goOn(visit)
    const { show: showStep, status = 200 } = stepOf(step.step)
    const tokenFor = (subject: string) => formTokenOf(hmac, placeOf(interaction), { page: step.step, subject })
    const page = await showStep(
      {
        ...{ query, operations, interaction, visitor, situation, step, hostname, locale, requestId },
        settings: settings(),
        action: interactionPath(interaction.id),
        csrf: (subject = '') => tokenFor(subject),
      },
      // What was entered on another page is of no use on this one.
      again?.page === step.step ? again.entered : undefined,
    )
    // The person was deleted between the two reads: whoever looks again sees it.
    if (!page) return redirectBrowser(visit.response, interactionPath(interaction.id))
    await send(visit, again?.status ?? status, page)
  }

  /** It is over: finished, or its time is, or something ended it. */
  const showEnd = async (visit: Visit, status?: number, problem: PageProblem = 'expired') => {
    const { requestId, interaction, locale } = visit
    const { client, request, isFinished } = interaction
    const told = { name: client.name, logoUri: client.logoUri }
    if (isFinished && request.device) {
      const isAllowed = interaction.state.consent?.isAllowed === true && interaction.state.isCancelled !== true
      return send(visit, 200, deviceDonePage({ locale, client: told, isAllowed }))
    }
    if (isFinished) {
      return send(visit, status ?? 200, finishedPage({ locale, client: told, wayOn: applicationLink(request) }))
    }
    const wayOn = wayOnAfter(request, client, issuer)
    await send(visit, status ?? 400, errorPage({ locale, problem, requestId, client: told, wayOn }))
  }

  const answer: Readonly<Record<Proceeded['kind'], (visit: Visit, proceeded: Proceeded) => Promise<void> | void>> = {
    redirect({ response, locale }, proceeded) {
      if (proceeded.kind !== 'redirect') return
      const { response: led, setCookies } = proceeded.redirect
      sendAuthorizationResponse(response, led, { setCookies, locale, secure })
    },
    // Post, redirect, get: reloading the next page sends nothing again.
    page: ({ response, interaction }) => redirectBrowser(response, interactionPath(interaction.id)),
    reset: ({ response, interaction }) => redirectBrowser(response, interactionPath(interaction.id)),
    async taken({ response, interaction }, proceeded) {
      if (proceeded.kind === 'taken') await operations.staging.release(interaction, proceeded.fields)
      redirectBrowser(response, interactionPath(interaction.id))
    },
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
    const proceeded = await operations.finish.proceed(interaction.id, visitor, eventRequestOf(visit, request), decision)
    await answer[proceeded.kind](visit, proceeded)
  }

  const submit = async (visit: Visit, form: Form, token: FormToken, releaseTurn: Release) => {
    const { interaction, visitor, locale, request } = visit
    const { submit: submitStep } = stepOf(token.page)
    const { situation, step } = await operations.standingOf(query, interaction, visitor)
    // Sent twice, or from a tab that was left behind: what it was about is over.
    if (step.step !== token.page) return goOn(visit)
    return submitStep({
      ...{ query, operations, interaction, visitor, situation, step, locale, form, token, releaseTurn },
      settings: settings(),
      request: eventRequestOf(visit, request),
      count: (proof, outcome) => counter.inc({ proof, outcome }),
      goOn: (decision) => goOn(visit, decision),
      async again(entered, status = 400) {
        // What the answer was about may have changed it; sent twice, the other one may have finished it.
        const now = await findInteraction(query, interaction.id)
        if (now?.isOpen === false) return goOn(visit)
        await show({ ...visit, interaction: now ?? interaction }, { status, page: token.page, entered })
      },
      // Of a form that is sent twice the other one may be finishing it: this one waits, and leads to the same place.
      reload: () => goOn(visit),
      keep: (decision) => keepDecision(query, interaction.id, decision),
      leave: async (url) => redirectBrowser(visit.response, url),
      end: async (problem) => showEnd(visit, 403, problem),
      refuse() {
        throw new Refusal('invalid_form', 400)
      },
    })
  }

  const post = async (request: IncomingMessage, response: ServerResponse, requestId: string) => {
    if (!isFromOwnPage(request, ownOrigin)) throw new Refusal('invalid_form', 403)
    const form = await readForm(request)
    const take = async (releaseTurn: Release) => {
      const visit = await visitOf(request, response, requestId)
      const { interaction } = visit
      const token = readFormToken(hmac, placeOf(interaction), onlyValue(form, 'csrf'))
      if (!token) throw new Refusal('invalid_form', 403)
      // Sent twice: the same answer, for some seconds.
      if (!interaction.isOpen) return goOn(visit)
      await submit(visit, form, token, releaseTurn)
    }
    const hashes = (onlyValue(form, 'password') ?? '') !== ''
    await (hashes ? inTurn(idOf(request.url) ?? '', take) : take(() => {}))
  }

  const get = async (request: IncomingMessage, response: ServerResponse, requestId: string) => {
    if (pathOf(request.url) === '/sign-in') {
      const elsewhere = dependencies.unknownSessionRedirectUrl()
      if (elsewhere === null) throw new Refusal('no_sign_in', 400)
      return redirectBrowser(response, elsewhere)
    }
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
      const locale = localeOf({ acceptLanguage: request.headers['accept-language'] })
      sendPage(response, status, errorPage({ locale, problem, requestId }), { headers, secure, branding })
    }
  }
}

/** A page of another version of the issuer may name a step that this one does not have. */
const stepOf = (name: StepName): SignInStep<unknown> => {
  const step = (steps as Partial<Record<StepName, SignInStep<unknown>>>)[name]
  if (!step) throw new Refusal('invalid_form', 400)
  return step
}

/** The account pages are called what people call them. */
const inWordsOf = (locale: Locale, client: Interaction['client']): Interaction['client'] =>
  client.id === accountClientId ? { ...client, name: accountName(locale) } : client

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
