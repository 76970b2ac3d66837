import type { RequestListener } from 'node:http'
import type { Logger } from '../platform/logger.ts'
import { OAuthError } from './base/errors/problems.ts'
import { type Endpoint, requestIdHeader, sendError } from './protocol/answers.ts'
import { type Cors, openPreflight, openToAll } from './protocol/cors.ts'
import { resumedId } from './sign-in/experience/resume-endpoint.ts'
import { newTokenId } from './tokens/access-token.ts'

export interface IssuerEndpoints {
  token: Endpoint
  authorization: Endpoint
  pushedAuthorization: Endpoint
  /** RFC 8628 */
  deviceAuthorization: Endpoint
  /** The page where the code of a device is entered. */
  device: Endpoint
  introspection: Endpoint
  revocation: Endpoint
  userinfo: Endpoint
  /** The pages of signing in: `/sign-in` and all below it. */
  signIn: Endpoint
  /** The pages of a person's account: `/account` and all below it. */
  account: Endpoint
  /** Files of the pages: all below `/assets/`. */
  assets: Endpoint
  /** For pages of signing in that are not ours: `/api/experience` and all below it. */
  experience: Endpoint
  /** `/oidc/auth/<id>`: where those lead. */
  resume: Endpoint
  /** `/callback/<connector>`: where identity providers send browsers back to. */
  callback: Endpoint
  /** Signing out. */
  endSession: Endpoint
  confirmEndSession: Endpoint
  /** The revocation feed. */
  revocations: Endpoint
  jwks: Endpoint
  metadata: Endpoint
  /** The administration console: `/console` and all below it. Absent: it is elsewhere, or there is none. */
  console?: Endpoint
  /** The Management API: everything that is not the protocol's. The Account API too. */
  management: RequestListener
}

/** The endpoints of a path by method. */
type Methods = ReadonlyMap<string, Endpoint>

/**
 * One listener for the whole issuer. `/oidc/*` is answered on node:http itself; Express would cost each token request
 * another half.
 */
export const createIssuerApp = (
  endpoints: IssuerEndpoints,
  { cors, logger }: { cors: Cors; logger: Logger },
): RequestListener => {
  const open = (endpoint: Endpoint) => {
    const readable = openToAll(endpoint)
    return { GET: readable, HEAD: readable, OPTIONS: openPreflight }
  }
  const forPages = (methods: readonly string[], endpoint: Endpoint) => {
    const readable = cors.registered(endpoint)
    return {
      ...Object.fromEntries(methods.map((method) => [method, readable])),
      OPTIONS: cors.preflight(methods),
    }
  }
  const document = open(endpoints.metadata)
  const manage: Endpoint = (request, response) => endpoints.management(request, response)
  const account = cors.registered(manage)
  const accountPreflight = cors.preflight(['GET', 'POST', 'PATCH', 'PUT', 'DELETE'], ['logto-verification-id'])
  const endpointsByPath: Readonly<Record<string, Readonly<Record<string, Endpoint>>>> = {
    '/oidc/auth': { GET: endpoints.authorization, POST: endpoints.authorization },
    '/oidc/request': forPages(['POST'], endpoints.pushedAuthorization),
    '/oidc/device/auth': { POST: endpoints.deviceAuthorization },
    '/device': { GET: endpoints.device, HEAD: endpoints.device, POST: endpoints.device },
    '/oidc/token': forPages(['POST'], endpoints.token),
    // Only for clients that can keep a secret, so for no page.
    '/oidc/token/introspection': { POST: endpoints.introspection },
    '/oidc/token/revocation': forPages(['POST'], endpoints.revocation),
    '/oidc/me': forPages(['GET', 'POST'], endpoints.userinfo),
    '/oidc/session/end': { GET: endpoints.endSession, POST: endpoints.endSession },
    '/oidc/session/end/confirm': { POST: endpoints.confirmEndSession },
    '/oidc/revocations': { GET: endpoints.revocations },
    '/oidc/jwks': open(endpoints.jwks),
    '/oidc/.well-known/openid-configuration': document,
    '/oidc/.well-known/oauth-authorization-server': document,
    // RFC 8414 §3.1: the well-known part stands before the path of the issuer.
    '/.well-known/oauth-authorization-server/oidc': document,
  }
  // Maps, because a path or a method may have the name of a member that every object has.
  const routes = new Map<string, Methods>(
    Object.entries(endpointsByPath).map(([path, methods]) => [path, new Map(Object.entries(methods))]),
  )

  return (request, response) => {
    const requestId = newTokenId()
    response.setHeader(requestIdHeader, requestId)
    const { url = '/', method = 'GET' } = request
    const query = url.indexOf('?')
    const path = query === -1 ? url : url.slice(0, query)
    const methods = routes.get(path)
    if (methods) {
      const endpoint = methods.get(method) ?? refuseMethod(methods, logger)
      void endpoint(request, response, requestId)
    } else if (method === 'GET' && resumedId(path) !== undefined) {
      void endpoints.resume(request, response, requestId)
    } else if (path === '/oidc' || path.startsWith('/oidc/')) {
      sendError(
        response,
        new OAuthError('invalid_request', 'There is no such route.', { status: 404 }),
        logger,
        requestId,
      )
    } else if (path === '/sign-in' || path.startsWith('/sign-in/')) {
      void endpoints.signIn(request, response, requestId)
    } else if (path.startsWith('/callback/')) {
      void endpoints.callback(request, response, requestId)
    } else if (path === '/account' || path.startsWith('/account/')) {
      void endpoints.account(request, response, requestId)
    } else if (path.startsWith('/assets/') && (method === 'GET' || method === 'HEAD')) {
      void endpoints.assets(request, response, requestId)
    } else if (path === '/api/experience' || path.startsWith('/api/experience/')) {
      void endpoints.experience(request, response, requestId)
    } else if (endpoints.console && isConsole(path)) {
      void endpoints.console(request, response, requestId)
    } else if (isAccount(path)) {
      void (method === 'OPTIONS' ? accountPreflight : account)(request, response, requestId)
    } else {
      endpoints.management(request, response)
    }
  }
}

const isConsole = (path: string): boolean => path === '/console' || path.startsWith('/console/')

/** A listener that serves the console and nothing else. */
export const consoleAlone =
  (endpoint: Endpoint): RequestListener =>
  (request, response) => {
    const requestId = newTokenId()
    response.setHeader(requestIdHeader, requestId)
    if (isConsole((request.url ?? '').split('?', 1)[0] ?? '')) return void endpoint(request, response, requestId)
    const isRoot = request.url === '/'
    response.writeHead(isRoot ? 303 : 404, isRoot ? { Location: '/console/' } : {}).end()
  }

/** The Account API, which pages of applications call. */
const isAccount = (path: string): boolean => /^\/api\/(my-account|verifications)(\/|$)/.test(path)

const refuseMethod =
  (methods: Methods, logger: Logger): Endpoint =>
  (_request, response, requestId) => {
    const headers = { Allow: [...methods.keys()].join(', ') }
    const error = new OAuthError('invalid_request', 'This method is not allowed here.', { status: 405, headers })
    sendError(response, error, logger, requestId)
  }
