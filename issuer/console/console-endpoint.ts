import { readFileSync } from 'node:fs'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Logger } from '../../platform/logger.ts'
import type { RequestOrigin } from '../base/client-address.ts'
import { errorAnswer } from '../base/errors/error-answer.ts'
import { problem } from '../base/errors/problems.ts'
import { sendFile, sendJson, sendNotice } from './answers.ts'
import type { ConsoleCookies } from './cookies.ts'
import type { ConsoleFiles } from './files.ts'
import { consoleHeaders, shellHeaders } from './headers.ts'
import type { ImpersonationExport } from './impersonation-export.ts'
import { readPreview } from './preview.ts'
import { requireOwnPage } from './request-guard.ts'
import { roleNameOf } from './role-name.ts'
import type { ConsoleSession, EndedConsoleSession } from './session-store.ts'
import type { ConsoleSessions } from './sessions.ts'
import type { ConsoleSignIn, Redirect, Refused } from './sign-in.ts'
import { endWhenOver } from './until-over.ts'

export type ConsoleEndpoint = (request: IncomingMessage, response: ServerResponse, requestId: string) => Promise<void>

export interface ConsoleEndpointDependencies {
  sessions: ConsoleSessions
  signIn: ConsoleSignIn
  cookies: ConsoleCookies
  /** Undefined: the console was not built. */
  files: ConsoleFiles | undefined
  /** The Management API, which takes what it is given from here. */
  management: RequestListener
  /** Ends the sign-in that the session came of, here and for every application. */
  signOut(ended: EndedConsoleSession, origin: RequestOrigin): Promise<void>
  /** The keys that tokens are verified with, for whoever looks into one. */
  jwks: RequestListener
  /** `/console/gateways` and all below it, for the person of the session. */
  gateways(
    request: IncomingMessage,
    response: ServerResponse,
    caller: { session: ConsoleSession; peek(): Promise<ConsoleSession | undefined> },
  ): Promise<void>
  /** `GET /console/impersonations/<id>/export`. */
  exportImpersonation: ImpersonationExport
  /** Calls of further paths below `/console`, by `POST /console/…`. */
  calls: Readonly<Record<string, ConsoleCall>>
  /** Where browsers reach the issuer. */
  baseUrl: string
  /** Where browsers reach the console: an origin. */
  consoleUrl: string
  originOf(request: IncomingMessage): RequestOrigin
  logger: Logger
}

/** A call of the page besides the Management API: it gets JSON and answers it. */
export type ConsoleCall = (
  request: IncomingMessage,
  origin: RequestOrigin,
) => Promise<{ status: number; body: unknown; setCookies?: readonly string[] }>

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

/**
 * `/console` and all below it: the page and its files for anybody, the way in and out, and `/console/api/…`, which is
 * the Management API for the person of the cookie. Their tokens never reach the browser.
 */
export const createConsoleEndpoint = (dependencies: ConsoleEndpointDependencies): ConsoleEndpoint => {
  const { sessions, signIn, cookies, files, management, calls, consoleUrl, originOf, logger } = dependencies
  const secure = consoleUrl.startsWith('https:')
  const everyAnswer = Object.entries(consoleHeaders({ secure }))

  const sendOutcome = (response: ServerResponse, outcome: Redirect | Refused) => {
    for (const cookie of outcome.setCookies) response.appendHeader('Set-Cookie', cookie)
    if ('refused' in outcome) return sendNotice(response, outcome.refused)
    response.writeHead(303, { Location: outcome.location, 'Cache-Control': 'no-store', 'Content-Length': 0 }).end()
  }

  const sessionOf = (request: IncomingMessage) => sessions.require(cookies.session(request))

  /** The same handlers that serve machines, for this person. */
  const callManagement: ConsoleEndpoint = async (request, response) => {
    const cookie = cookies.session(request)
    const session = await sessions.require(cookie)
    const token = await sessions.accessToken(session, originOf(request))
    request.url = (request.url ?? '').slice('/console'.length)
    // What a page says of who it is counts for nothing.
    delete request.headers.cookie
    delete request.headers['dpop']
    request.headers.authorization = `Bearer ${token}`
    endWhenOver(response, async () => !(await sessions.stillAllows(cookie, session)))
    management(request, response)
  }

  const endSession = async (request: IncomingMessage, response: ServerResponse) => {
    const cookie = cookies.session(request)
    const ended = cookie === undefined ? undefined : await sessions.end(cookie)
    if (ended) await dependencies.signOut(ended, originOf(request))
    response.appendHeader('Set-Cookie', cookies.clearSession())
    sendJson(response, 200, { location: '/console/signed-out' })
  }

  const call = async (request: IncomingMessage, response: ServerResponse, own: ConsoleCall) => {
    const { status, body, setCookies = [] } = await own(request, originOf(request))
    for (const cookie of setCookies) response.appendHeader('Set-Cookie', cookie)
    sendJson(response, status, body)
  }

  const sendExport = async (request: IncomingMessage, response: ServerResponse, id: string) => {
    requireOwnPage(request, consoleUrl)
    const content = await dependencies.exportImpersonation(await sessionOf(request), id, originOf(request))
    response.writeHead(200, {
      'Content-Type': 'application/x-ndjson; charset=utf-8',
      'Content-Length': Buffer.byteLength(content),
      'Content-Disposition': `attachment; filename="impersonation-${id}.ndjson"`,
      'Cache-Control': 'no-store',
    })
    response.end(request.method === 'HEAD' ? undefined : content)
  }

  const get = async (request: IncomingMessage, response: ServerResponse, path: string) => {
    if (path === '/console/sign-in') return sendOutcome(response, signIn.begin(request))
    if (path === '/console/callback') return sendOutcome(response, await signIn.callback(request, originOf(request)))
    if (path === '/console/signed-out') return sendNotice(response, 'signed_out')
    if (path === '/console/session') {
      requireOwnPage(request, consoleUrl)
      return sendJson(response, 200, sessionBody(await sessionOf(request), dependencies.baseUrl))
    }
    if (path === '/console/jwks') return dependencies.jwks(request, response)
    const exported = /^\/console\/impersonations\/([\w-]{1,21})\/export$/.exec(path)?.[1]
    if (exported !== undefined) return sendExport(request, response, exported)
    if (!files) return sendNotice(response, 'not_built')
    if (!path.startsWith('/console/assets/'))
      return sendFile(request, response, await files.shell(request), shellHeaders)
    const asset = await files.asset(request, path.slice('/console/assets/'.length))
    if (!asset) throw problem('guard.not_found')
    sendFile(request, response, asset)
  }

  const sendPreview = async (request: IncomingMessage, response: ServerResponse) => {
    requireOwnPage(request, consoleUrl, { takesForm: true })
    await sessionOf(request)
    const { content, headers } = await readPreview(request, dependencies.baseUrl)
    const type = { 'Content-Type': 'text/html; charset=utf-8', 'Content-Length': Buffer.byteLength(content) }
    response.writeHead(200, { ...headers, ...type, 'Cache-Control': 'no-store' }).end(content)
  }

  const post = async (request: IncomingMessage, response: ServerResponse, path: string) => {
    if (path === '/console/preview') return sendPreview(request, response)
    const own = Object.hasOwn(calls, path) ? calls[path] : undefined
    if (path !== '/console/session/end' && !own) throw problem('guard.not_found')
    requireOwnPage(request, consoleUrl)
    await (own ? call(request, response, own) : endSession(request, response))
  }

  const serve: ConsoleEndpoint = async (request, response, requestId) => {
    const path = (request.url ?? '').split('?', 1)[0] ?? ''
    if (path.startsWith('/console/api/')) {
      requireOwnPage(request, consoleUrl)
      return callManagement(request, response, requestId)
    }
    if (path === '/console/gateways' || path.startsWith('/console/gateways/')) {
      requireOwnPage(request, consoleUrl)
      const cookie = cookies.session(request)
      const session = await sessions.require(cookie)
      return dependencies.gateways(request, response, { session, peek: () => sessions.peek(cookie) })
    }
    if (request.method === 'GET' || request.method === 'HEAD') return get(request, response, path)
    if (request.method === 'POST') return post(request, response, path)
    throw problem('guard.method_not_allowed', { headers: { Allow: 'GET, HEAD, POST' } })
  }

  return async (request, response, requestId) => {
    for (const [name, value] of everyAnswer) response.setHeader(name, value)
    await serve(request, response, requestId).catch((error: unknown) => {
      const { status, headers, body } = errorAnswer(error, logger, requestId)
      if (response.headersSent || response.destroyed) return void response.destroy()
      sendJson(response, status, body, headers)
    })
  }
}

const sessionBody = ({ user, roles, scopes, authTime, expiresAt }: ConsoleSession, baseUrl: string) => ({
  user,
  roles: roles.map(roleNameOf),
  scopes,
  authTime,
  expiresAt,
  baseUrl,
  version,
})
