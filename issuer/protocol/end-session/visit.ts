import type { IncomingMessage, ServerResponse } from 'node:http'
import { isDatabaseUnavailable } from '../../../platform/database/database-unavailable.ts'
import type { Logger } from '../../../platform/logger.ts'
import { logFault } from '../../base/errors/log-fault.ts'
import { OAuthError } from '../../base/errors/problems.ts'
import {
  type Branding,
  type Brandings,
  errorPage,
  type Locale,
  type LocaleOf,
  type Page,
  type PageProblem,
  type SendPageOptions,
  sendPage,
} from '../../pages/index.ts'
import type { Endpoint } from '../answers.ts'
import type { LogoutRefusal } from './logout-request.ts'

/** A browser that is at one of the addresses of signing out. */
export interface Visit {
  request: IncomingMessage
  requestId: string
  locale: Locale
  /** The same visit, in the language that the client asks for. */
  inLanguageOf(uiLocales: string | undefined): Visit
  show(status: number, page: Page, options?: Omit<SendPageOptions, 'secure' | 'branding'>): void
  refuse(status: number, refusal: LogoutRefusal, headers?: Readonly<Record<string, string>>): void
  redirect(location: string, setCookies?: readonly string[]): void
}

const visitOf = (
  request: IncomingMessage,
  response: ServerResponse,
  known: {
    requestId: string
    secure: boolean
    branding: Branding | undefined
    localeOf: LocaleOf
    uiLocales?: string | undefined
  },
): Visit => {
  const { requestId, secure, branding, uiLocales } = known
  const locale = known.localeOf({
    uiLocales: uiLocales?.split(' '),
    acceptLanguage: request.headers['accept-language'],
  })
  const show: Visit['show'] = (status, page, options = {}) =>
    sendPage(response, status, page, { ...options, secure, branding })
  return {
    request,
    requestId,
    locale,
    inLanguageOf: (asked) => visitOf(request, response, { ...known, uiLocales: asked }),
    show,
    refuse: (status, refusal, headers) => show(status, errorPage({ locale, requestId, ...refusal }), { headers }),
    redirect(location, setCookies = []) {
      for (const cookie of setCookies) response.appendHeader('Set-Cookie', cookie)
      // The address that was asked for may hold an ID token.
      const headers = { Location: location, 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' }
      response.writeHead(303, headers).end()
    },
  }
}

/** An endpoint for people: what fails is told by a page. */
export const pageEndpoint =
  (
    {
      secure,
      brandings,
      localeOf,
      logger,
    }: { secure: boolean; brandings: Brandings; localeOf: LocaleOf; logger: Logger },
    handle: (visit: Visit) => Promise<void> | void,
  ): Endpoint =>
  async (request, response, requestId) => {
    const visit = visitOf(request, response, {
      ...{ requestId, secure, localeOf },
      branding: await brandings.of(undefined),
    })
    try {
      await handle(visit)
    } catch (cause) {
      const error = cause instanceof OAuthError ? cause : unforeseen(cause)
      if (error.status >= 500) logFault(logger, error, { requestId }, 'signing out failed')
      if (response.headersSent || response.destroyed) response.destroy()
      else visit.refuse(error.status, { problem: problems[error.status] ?? 'invalid_request' }, error.headers)
    }
  }

const problems: Readonly<Record<number, PageProblem>> = {
  429: 'too_many_requests',
  500: 'server_error',
  503: 'temporarily_unavailable',
}

const unforeseen = (cause: unknown): OAuthError =>
  isDatabaseUnavailable(cause)
    ? new OAuthError('temporarily_unavailable', 'Nobody can be signed out now.', {
        headers: { 'Retry-After': '5' },
        cause,
      })
    : new OAuthError('server_error', 'Signing out failed.', { cause })
