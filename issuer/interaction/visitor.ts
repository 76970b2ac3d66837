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
  /** A frame, a picture or a script of another page asks: no page of ours can be shown there. */
  isEmbedded: boolean
  /** What custom claims scripts are told of the sign-in; see `SignInRecord`. */
  signInContext: Record<string, string>
}

export const visitorOf = (cookies: Cookies, request: IncomingMessage, origin: RequestOrigin): Visitor => ({
  session: cookies.read(request, 'session'),
  browser: cookies.read(request, 'browser'),
  device: cookies.read(request, 'device'),
  origin,
  acceptLanguage: request.headers['accept-language'],
  isEmbedded: (request.headers['sec-fetch-dest'] ?? 'document') !== 'document',
  signInContext: { ip: origin.ip, ...(origin.userAgent === undefined ? {} : { userAgent: origin.userAgent }) },
})
