import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Query } from '../../../platform/database/database.ts'
import { randomToken } from '../../../platform/ids.ts'
import type { Logger } from '../../../platform/logger.ts'
import type { TokenAudit } from '../../base/audit/token-audit.ts'
import type { Cookies } from '../../base/cookies.ts'
import { logFault } from '../../base/errors/log-fault.ts'
import type { Hmac } from '../../base/hmac-keys-store.ts'
import { onlyValue, parseForm, readForm } from '../../base/read-form.ts'
import { isFromOwnPage } from '../../base/same-origin.ts'
import { lockoutKeys } from '../../directory/users/lockout/lockout-keys.ts'
import { findAuthorizationClient } from '../../interaction/authorization-client-store.ts'
import { authorizationRequest } from '../../interaction/authorization-request.ts'
import type { Interactions } from '../../interaction/interactions.ts'
import { redirectBrowser } from '../../interaction/send-authorization-response.ts'
import { devicePath } from '../../interaction/start-again.ts'
import type { VisitorOf } from '../../interaction/visitor.ts'
import {
  type Brandings,
  type DeviceCodeError,
  devicePage,
  errorPage,
  type LocaleOf,
  type Page,
  sendPage,
} from '../../pages/index.ts'
import { Refusal, refusalOf } from '../../pages/refusal.ts'
import { findOpenDeviceCode, type OpenDeviceCode } from '../../tokens/device-codes/device-code-store.ts'
import { readUserCode, userCodeKey } from '../../tokens/device-codes/user-code.ts'
import type { PageEndpoint } from '../sign-in-endpoint.ts'
import { countEntry, forgiveEntry } from './entry-store.ts'

export interface DeviceEndpointDependencies {
  query: Query
  hmac: Hmac
  audit: TokenAudit
  interactions: Interactions
  cookies: Pick<Cookies, 'set'>
  visitorOf: VisitorOf
  brandings: Brandings
  localeOf: LocaleOf
  /** Where browsers reach the issuer. */
  baseUrl: string
  logger: Logger
}

const entryStatus: Readonly<Record<DeviceCodeError, number>> = { missing: 400, wrong: 400, too_many_requests: 429 }

/**
 * `GET|POST /device` (RFC 8628 §3.3): a person enters the code that a device shows, and goes on to sign in anew. The
 * page of consent then says who asks, and asks whether the device is theirs. A link with the code only fills it in:
 * whoever fetches links beforehand looks nothing up.
 */
export const createDeviceEndpoint = (dependencies: DeviceEndpointDependencies): PageEndpoint => {
  const { query, hmac, audit, interactions, cookies, visitorOf, brandings, localeOf, baseUrl, logger } = dependencies
  const { origin: ownOrigin, protocol } = new URL(baseUrl)
  const failureKeys = lockoutKeys(hmac)

  const csrfOf = (browser: string) => hmac('csrf', 'device', browser).toString('base64url')

  const show = async (
    { request, browser, setCookies }: Visit,
    status: number,
    shown: { userCode: string; isFromLink: boolean; error?: DeviceCodeError },
  ): Promise<Answer> => {
    const locale = localeOf({ acceptLanguage: request.headers['accept-language'] })
    return { status, setCookies, page: devicePage({ locale, action: devicePath, csrf: csrfOf(browser), ...shown }) }
  }

  const get = async (visit: Visit): Promise<Answer> => {
    const [, search = ''] = (visit.request.url ?? '').split('?', 2)
    const userCode = readUserCode(onlyValue(parseForm(search), 'user_code') ?? '')
    return show(visit, 200, { userCode: userCode ?? '', isFromLink: userCode !== undefined })
  }

  const post = async (visit: Visit): Promise<Answer> => {
    const { request, browser, isKnown } = visit
    if (!isFromOwnPage(request, ownOrigin)) throw new Refusal('invalid_form', 403)
    const form = await readForm(request)
    const entered = onlyValue(form, 'user_code') ?? ''
    // A page that was left behind, of a browser that has another cookie by now: the same one that works.
    if (!isKnown || !isEqual(onlyValue(form, 'csrf') ?? '', csrfOf(browser)))
      return show(visit, 403, { userCode: readUserCode(entered) ?? '', isFromLink: false })
    const again = (error: DeviceCodeError) =>
      show(visit, entryStatus[error], { userCode: entered.slice(0, 32), isFromLink: false, error })
    if (entered.trim() === '') return again('missing')
    const visitor = visitorOf(request)
    const keys = { browser: failureKeys.deviceEntry(browser), address: failureKeys.deviceEntryFrom(visitor.origin.ip) }
    if (!(await countEntry(query, keys))) return again('too_many_requests')
    const userCode = readUserCode(entered)
    const found = userCode === undefined ? undefined : await findOpenDeviceCode(query, userCodeKey(hmac, userCode))
    const client = found && (await findAuthorizationClient(query, found.clientId))
    if (!found || !client) {
      const { ip, userAgent } = visitor.origin
      audit.record({ key: 'Interaction.DeviceCode.Submit', result: 'Error', payload: { ip, userAgent } })
      return again('wrong')
    }
    await forgiveEntry(query, keys)
    const begun = await interactions.begin(requestOf(found, baseUrl), client, visitor)
    // In a frame no page can be shown.
    if (begun.kind !== 'page') throw new Refusal('invalid_request', 400)
    return { location: begun.location, setCookies: [...visit.setCookies, ...begun.setCookies] }
  }

  const methods = new Map([
    ['GET', get],
    ['HEAD', get],
    ['POST', post],
  ])

  const visitOf = (request: IncomingMessage): Visit => {
    const { browser } = visitorOf(request)
    if (browser !== undefined) return { request, browser, isKnown: true, setCookies: [] }
    const fresh = randomToken()
    return { request, browser: fresh, isKnown: false, setCookies: [cookies.set('browser', fresh)] }
  }

  return async (request, response, requestId) => {
    const options = { secure: protocol === 'https:', branding: await brandings.of(undefined).catch(() => undefined) }
    try {
      const handle = methods.get(request.method ?? '')
      if (!handle) throw new Refusal('invalid_request', 405, { headers: { Allow: [...methods.keys()].join(', ') } })
      const answer = await handle(visitOf(request))
      if ('location' in answer) return redirectBrowser(response, answer.location, answer)
      sendPage(response, answer.status, answer.page, { ...options, setCookies: answer.setCookies })
    } catch (error) {
      const refusal = refusalOf(error)
      if (refusal.status >= 500) logFault(logger, refusal, { requestId }, 'the page of devices could not be shown')
      if (response.headersSent || response.destroyed) return void response.destroy()
      const { problem, status, headers } = refusal
      const locale = localeOf({ acceptLanguage: request.headers['accept-language'] })
      sendPage(response, status, errorPage({ locale, problem, requestId }), { ...options, headers })
    }
  }
}

interface Visit {
  request: IncomingMessage
  /** The value of its cookie, or of the one that it gets. */
  browser: string
  isKnown: boolean
  setCookies: readonly string[]
}

type Answer =
  | { location: string; setCookies: readonly string[] }
  | { status: number; page: Page; setCookies: readonly string[] }

/** What the device asked for, as the request of a browser. No application has this redirect URI. */
const requestOf = ({ digest, request, address, createdAt }: OpenDeviceCode, baseUrl: string) => ({
  ...authorizationRequest.parse(request),
  redirectUri: `${baseUrl}${devicePath}`,
  device: { code: digest, address, askedAt: createdAt },
})

const isEqual = (one: string, other: string): boolean => {
  const [presented, expected] = [Buffer.from(one), Buffer.from(other)]
  return presented.length === expected.length && timingSafeEqual(presented, expected)
}
