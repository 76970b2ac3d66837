import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Query } from '../../platform/database/database.ts'
import { type Logger, throttledLevel } from '../../platform/logger.ts'
import type { Endpoint } from './answers.ts'
import { isRegisteredOrigin } from './cors-store.ts'

/**
 * Which pages may read our answers (Fetch standard, CORS). Public documents: all. Endpoints that a browser application
 * calls: pages of an origin that some application is registered with, by `customClientMetadata.corsAllowedOrigins` or a
 * redirect URI. No answer depends on cookies, so credentials are never allowed. Everything else says nothing, and so no
 * page may read it.
 */
export interface Cors {
  /** Wraps an endpoint that pages of registered origins may call. */
  registered(endpoint: Endpoint): Endpoint
  /** Answers OPTIONS for such an endpoint, with its methods, and headers that it reads besides. */
  preflight(methods: readonly string[], headers?: readonly string[]): Endpoint
}

/** How long a browser may remember a preflight, in seconds. */
const maxAge = '600'
const readable = 'WWW-Authenticate, Retry-After, DPoP-Nonce, Logto-Core-Request-Id'

// An opaque origin (`null`) stands for any sandboxed frame or local file, so it is nobody's.
const webOrigin = /^https?:\/\/[^/?#@\s]{1,300}$/

export const createCors = ({ query, logger }: { query: Query; logger: Logger }): Cors => {
  /** True when the page may read the answer, and then the answer says so. */
  const allow = async (request: IncomingMessage, response: ServerResponse): Promise<boolean> => {
    response.setHeader('Vary', 'Origin')
    const { origin } = request.headers
    if (origin === undefined || !webOrigin.test(origin)) return false
    try {
      if (!(await isRegisteredOrigin(query, origin))) return false
    } catch (error) {
      const level = throttledLevel(logger, 'error', 'origin')
      logger[level]({ err: error }, 'the origin of a request could not be looked up')
      return false
    }
    response.setHeader('Access-Control-Allow-Origin', origin)
    response.setHeader('Access-Control-Expose-Headers', readable)
    return true
  }

  return {
    registered: (endpoint) => async (request, response, requestId) => {
      // Beside browsers nobody sends it, so nobody else pays for the look-up.
      if (request.headers.origin === undefined) response.setHeader('Vary', 'Origin')
      else await allow(request, response)
      return endpoint(request, response, requestId)
    },
    preflight:
      (methods, headers = []) =>
      async (request, response) => {
        if (await allow(request, response)) {
          response.setHeader('Access-Control-Allow-Methods', methods.join(', '))
          response.setHeader(
            'Access-Control-Allow-Headers',
            ['Authorization, Content-Type, DPoP', ...headers].join(', '),
          )
          response.setHeader('Access-Control-Max-Age', maxAge)
        }
        response.writeHead(204, { Allow: [...methods, 'OPTIONS'].join(', ') }).end()
      },
  }
}

/** Wraps the endpoint of a public document. */
export const openToAll =
  (endpoint: Endpoint): Endpoint =>
  (request, response, requestId) => {
    response.setHeader('Access-Control-Allow-Origin', '*')
    response.setHeader('Access-Control-Expose-Headers', 'ETag, Logto-Core-Request-Id')
    return endpoint(request, response, requestId)
  }

export const openPreflight: Endpoint = openToAll((_request, response) => {
  response
    .writeHead(204, {
      Allow: 'GET, HEAD, OPTIONS',
      'Access-Control-Allow-Methods': 'GET, HEAD',
      'Access-Control-Allow-Headers': '*',
      'Access-Control-Max-Age': maxAge,
    })
    .end()
})
