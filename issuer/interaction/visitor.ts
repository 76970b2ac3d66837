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

export type VisitorOf = (request: IncomingMessage) => Visitor

export interface VisitorDependencies {
  cookies: Cookies
  originOf(request: IncomingMessage): RequestOrigin
  /** Whether what its headers tell of the client is believed. */
  isFromProxy(request: IncomingMessage): boolean
}

export const createVisitorOf =
  ({ cookies, originOf, isFromProxy }: VisitorDependencies): VisitorOf =>
  (request) => {
    const origin = originOf(request)
    const { ip, userAgent } = origin
    return {
      session: cookies.read(request, 'session'),
      browser: cookies.read(request, 'browser'),
      device: cookies.read(request, 'device'),
      origin,
      acceptLanguage: request.headers['accept-language'],
      isEmbedded: (request.headers['sec-fetch-dest'] ?? 'document') !== 'document',
      signInContext: {
        ip,
        ...(userAgent === undefined ? {} : { userAgent }),
        ...(isFromProxy(request) ? placeOf(request) : {}),
      },
    }
  }

/** What proxies know of where a client is, by the names that scripts of custom claims know. */
const placeHeaders = {
  country: 'x-logto-cf-country',
  city: 'x-logto-cf-city',
  latitude: 'x-logto-cf-latitude',
  longitude: 'x-logto-cf-longitude',
  botScore: 'x-logto-cf-bot-score',
  botVerified: 'x-logto-cf-bot-verified',
} as const

const maxPlaceLength = 256

const placeOf = ({ headers }: IncomingMessage): Record<string, string> =>
  Object.fromEntries(
    Object.entries(placeHeaders).flatMap(([name, header]) => {
      const value = headers[header]
      return typeof value === 'string' && value !== '' ? [[name, value.slice(0, maxPlaceLength)]] : []
    }),
  )
