import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Query } from '../../../platform/database/database.ts'
import type { Logger } from '../../../platform/logger.ts'
import { asAppError } from '../../base/errors/error-answer.ts'
import { logFault } from '../../base/errors/log-fault.ts'
import { interactionPath } from '../../interaction/interaction-path.ts'
import { findInteraction } from '../../interaction/interaction-store.ts'
import type { InteractionOperations } from '../../interaction/operations.ts'
import { redirectBrowser, sendAuthorizationResponse } from '../../interaction/send-authorization-response.ts'
import type { VisitorOf } from '../../interaction/visitor.ts'
import type { LocaleOf } from '../../pages/index.ts'
import { tokenDigest } from '../../tokens/token-digest.ts'
import type { PageEndpoint } from '../sign-in-endpoint.ts'
import { resumePath } from './submit.ts'

export interface ResumeDependencies {
  query: Query
  operations: InteractionOperations
  visitorOf: VisitorOf
  /** Where browsers reach the issuer. */
  localeOf: LocaleOf
  baseUrl: string
  logger: Logger
}

/**
 * `GET /oidc/auth/<id>`: where `/submit` sends the browser. Back to the client when nothing is missing, otherwise to
 * the page of ours that asks for it, or says why there is nothing to go on with.
 */
export const createResumeEndpoint = ({
  query,
  localeOf,
  operations,
  visitorOf,
  baseUrl,
  logger,
}: ResumeDependencies): PageEndpoint => {
  const secure = baseUrl.startsWith('https:')

  /** Undefined: the browser has no such interaction, or it is not over yet. */
  const proceed = async (request: IncomingMessage, response: ServerResponse, id: string) => {
    const visitor = visitorOf(request)
    const { browser } = visitor
    const interaction = browser === undefined ? undefined : await findInteraction(query, id)
    if (!interaction || browser === undefined) return false
    if (!timingSafeEqual(tokenDigest('browser', browser), interaction.browser)) return false
    const { ip, userAgent } = visitor.origin
    const asked = { ip, userAgent, method: 'GET', path: resumePath(id), matchedRoute: resumePath(':id') }
    const eventRequest = { ...asked, params: { id }, status: 303 }
    const proceeded = await operations.finish.proceed(id, { ...visitor, browser }, eventRequest)
    if (proceeded.kind !== 'redirect') return false
    const { uiLocales } = interaction.request
    const locale = localeOf({ uiLocales, acceptLanguage: visitor.acceptLanguage })
    const { response: led, setCookies } = proceeded.redirect
    sendAuthorizationResponse(response, led, { setCookies, locale, secure })
    return true
  }

  return async (request, response, requestId) => {
    const id = resumedId(request.url) ?? ''
    try {
      if (await proceed(request, response, id)) return
    } catch (error) {
      // The page says that something is wrong, in words.
      logFault(logger, asAppError(error), { requestId }, 'a sign-in could not be resumed')
      if (response.headersSent) return void response.destroy()
    }
    redirectBrowser(response, interactionPath(id))
  }
}

/** Of the path; undefined for any other. */
export const resumedId = (url = '/'): string | undefined => /^\/oidc\/auth\/([0-9a-z]{21})(?:\?|$)/.exec(url)?.[1]
