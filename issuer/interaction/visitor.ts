import type { IncomingMessage } from 'node:http'
import type { RequestOrigin } from '../base/client-address.ts'
import type { Cookies } from '../base/cookies.ts'

/** Who stands before the issuer: a browser, as far as its request tells. */
export interface Visitor {
  /** The values of its cookies. */
  session: string | undefined
  browser: string | undefined
  device: string | undefined
  origin: RequestOrigin
  acceptLanguage: string | undefined
  /** What custom claims scripts are told of the sign-in; see `SignInRecord`. */
  signInContext: Record<string, string>
}

export const visitorOf = (cookies: Cookies, request: IncomingMessage, origin: RequestOrigin): Visitor => ({
  session: cookies.read(request, 'session'),
  browser: cookies.read(request, 'browser'),
  device: cookies.read(request, 'device'),
  origin,
  acceptLanguage: request.headers['accept-language'],
  signInContext: { ip: origin.ip, ...(origin.userAgent === undefined ? {} : { userAgent: origin.userAgent }) },
})
