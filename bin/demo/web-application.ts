import { randomBytes } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import * as openid from 'openid-client'
import { request } from 'undici'
import { listen, type RunningServer } from '../../platform/http/http-server.ts'
import { readWhole } from '../../platform/http/read-whole.ts'
import { createSupportDesk, type Desk } from './support.ts'
import { askPage } from './support-pages.ts'
import { ordersPage, problemPage, redirect, sendPage, signedOutPage } from './web-pages.ts'

/**
 * A web application in which people sign in, as an integrator would write it: a backend for a browser that sees no
 * token. It reads orders through the gateway on behalf of who has signed in. State is in memory, because it is a
 * demonstration: after a restart nobody is signed in here, whatever cookies say.
 */
export interface WebApplication extends RunningServer {
  /** Begins to serve; known once the issuer and the gateway answer. */
  use(settings: WebApplicationSettings): Promise<void>
}

export interface WebApplicationSettings {
  /** The `iss` of its tokens. */
  issuer: string
  client: Credentials
  /** Whoever has this role acts for customers; the Management API is called with `backend`. */
  support: { role: string; managementApi: string; backend: Credentials }
  gatewayUrl: string
  /** The resource that it asks a token for. */
  ordersResource: string
}

interface Credentials {
  clientId: string
  clientSecret: string
}

/** What the server keeps of a browser, by the value of its cookie. */
interface BrowserSession {
  /** Of a sign-in that is under way. */
  pending?: { state: string; nonce: string; verifier: string }
  person?: Person | undefined
  /** Of support: for whom they act, or want to. */
  desk?: Desk
}
interface Person {
  id: string
  name: string
  isSupport: boolean
  idToken: string | undefined
  accessToken: string
  /** When the access token ends, in ms. */
  endsAt: number
  refreshToken: string | undefined
}

type Page = (request: IncomingMessage, response: ServerResponse, session: BrowserSession) => Promise<void>

const cookieName = 'demo_web'
const scope = 'openid profile email roles read:orders'
/** The one that came first is forgotten. */
const mostSessions = 1_000

export const startWebApplication = async (options: { host: string; port: number }): Promise<WebApplication> => {
  const sessions = new Map<string, BrowserSession>()
  let pages: Readonly<Record<string, Page>> | undefined

  const cookieOf = ({ headers }: IncomingMessage): string =>
    new RegExp(`(?:^|; )${cookieName}=([\\w-]+)`).exec(headers.cookie ?? '')?.[1] ?? ''

  /** A new cookie at every step up, so that nobody who planted the old one is signed in along. */
  const renew = (request: IncomingMessage, response: ServerResponse, session: BrowserSession) => {
    sessions.delete(cookieOf(request))
    const value = randomBytes(32).toString('base64url')
    sessions.set(value, session)
    const [oldest = ''] = sessions.keys()
    if (sessions.size > mostSessions) sessions.delete(oldest)
    response.setHeader('Set-Cookie', `${cookieName}=${value}; Path=/; HttpOnly; SameSite=Lax`)
  }

  const handler: RequestListener = (request, response) => {
    // `//` is an address of no host, for one.
    const page = pages?.[`${request.method} ${URL.parse(request.url ?? '/', server.url)?.pathname}`]
    if (!page) return sendPage(response, pages ? 404 : 503, problemPage('There is nothing here.'))
    const session = sessions.get(cookieOf(request)) ?? {}
    page(request, response, session).catch((error: unknown) => {
      sendPage(response, isRefusal(error) ? 400 : 502, problemPage('That did not work.', whyOf(error)))
    })
  }
  const server = await listen({ name: 'the demo web application', setting: 'DEMO_WEB_PORT', handler, ...options })

  return {
    ...server,
    async use({ issuer, client: { clientId, clientSecret }, support, gatewayUrl, ordersResource: resource }) {
      const config = await openid.discovery(new URL(issuer), clientId, clientSecret, undefined, {
        // The demo's issuer is reached over plain http on this machine.
        execute: [openid.allowInsecureRequests],
      })
      const apis = { managementApi: support.managementApi, gatewayUrl, ordersResource: resource }
      const supportDesk = createSupportDesk({ application: config, backend: support.backend, ...apis })
      const home = new URL('/', server.url)
      const redirectUri = new URL('/callback', server.url).href

      const personOf = (tokens: openid.TokenEndpointResponse & openid.TokenEndpointResponseHelpers, was?: Person) => {
        const claims = tokens.claims()
        const roles = claims?.['roles']
        return {
          id: claims?.sub ?? was?.id ?? '',
          name: String(claims?.['name'] ?? claims?.['email'] ?? was?.name ?? claims?.sub),
          isSupport: Array.isArray(roles) ? roles.includes(support.role) : (was?.isSupport ?? false),
          idToken: tokens.id_token ?? was?.idToken,
          accessToken: tokens.access_token,
          endsAt: Date.now() + (tokens.expiresIn() ?? 0) * 1000,
          // RFC 6749 §6: without another one, the old one stays.
          refreshToken: tokens.refresh_token ?? was?.refreshToken,
        }
      }

      const renewed = async (person: Person): Promise<Person> =>
        personOf(await openid.refreshTokenGrant(config, person.refreshToken ?? '', { resource }), person)

      const signingIn =
        (more: Record<string, string> = {}): Page =>
        async (request, response, { person }) => {
          if (person) return redirect(response, home)
          const [state, nonce, verifier] = [openid.randomState(), openid.randomNonce(), openid.randomPKCECodeVerifier()]
          renew(request, response, { pending: { state, nonce, verifier } })
          const code_challenge = await openid.calculatePKCECodeChallenge(verifier)
          const proof = { state, nonce, code_challenge, code_challenge_method: 'S256' }
          const asked = { redirect_uri: redirectUri, scope, resource, ...proof, ...more }
          redirect(response, openid.buildAuthorizationUrl(config, asked))
        }

      /** With a new access token when the old one is about to end, or the gateway takes it no longer. */
      const readOrders = async (session: BrowserSession, person: Person): Promise<{ status: number; body: string }> => {
        const ask = async ({ accessToken }: Person) => {
          const answer = await request(`${gatewayUrl}/orders`, { headers: { authorization: `Bearer ${accessToken}` } })
          return { status: answer.statusCode, body: await answer.body.text() }
        }
        if (person.endsAt > Date.now() + 10_000) {
          const answer = await ask(person)
          if (answer.status !== 401) return answer
        }
        const fresh = await renewed(person)
        // Whoever signed out meanwhile, in another tab, stays signed out.
        if (session.person === person) session.person = fresh
        return ask(fresh)
      }

      /** A page for support only; a form must be one of ours, which other ports of this machine are not. */
      const forSupport =
        (page: (desk: Desk, ...rest: [...Parameters<Page>, Person]) => Promise<void>): Page =>
        async (request, response, session) => {
          const { person } = session
          if (!person) return redirect(response, home)
          if (!person.isSupport) return sendPage(response, 403, problemPage('This page is for support.'))
          if (!isOurs(request)) return sendPage(response, 403, problemPage('This form is of another page.'))
          session.desk ??= {}
          await page(session.desk, request, response, session, person)
        }
      // SameSite keeps the cookie from posts of other sites; other ports of this machine are the same site.
      const isOurs = ({ headers }: IncomingMessage) => (headers.origin ?? home.origin) === home.origin

      /** Without a resource: it proves who somebody is, and opens no API. */
      const actorTokenOf = async (session: BrowserSession, person: Person): Promise<string> => {
        const tokens = await openid.refreshTokenGrant(config, person.refreshToken ?? '')
        if (session.person === person && tokens.refresh_token)
          session.person = { ...person, refreshToken: tokens.refresh_token }
        return tokens.access_token
      }

      pages = {
        'GET /': async (_request, response, session) => {
          const { person } = session
          if (!person) return sendPage(response, 200, signedOutPage())
          try {
            const { name, isSupport } = person
            sendPage(response, 200, ordersPage({ name, isSupport, ...(await readOrders(session, person)) }))
          } catch (error) {
            // Not when the issuer has no time (429, 503).
            if (!(error instanceof openid.ResponseBodyError && error.status === 400)) throw error
            // It gives no more tokens: whoever it was is signed in no longer, here neither.
            delete session.person
            sendPage(response, 200, signedOutPage(`Your sign-in has ended (${error.error}).`))
          }
        },
        'GET /sign-in': signingIn(),
        // OpenID Connect Prompt Create 1.0: to the form for a new account.
        'GET /register': signingIn({ prompt: 'create' }),
        'GET /callback': async (request, response, { pending }) => {
          if (!pending) return redirect(response, home)
          const { state: expectedState, nonce: expectedNonce, verifier: pkceCodeVerifier } = pending
          const checks = { expectedState, expectedNonce, pkceCodeVerifier, idTokenExpected: true }
          const url = new URL(request.url ?? '', server.url)
          try {
            const person = personOf(await openid.authorizationCodeGrant(config, url, checks, { resource }))
            renew(request, response, { person })
            redirect(response, home)
          } catch (error) {
            const isDenied = error instanceof openid.AuthorizationResponseError && error.error === 'access_denied'
            if (!isDenied) throw error
            sendPage(response, 200, signedOutPage('You did not sign in.'))
          }
        },
        'GET /support': forSupport(async (desk, _request, response) => {
          sendPage(response, 200, await supportDesk.page(desk))
        }),
        'POST /support': forSupport(async (desk, request, response, session, person) => {
          const form = new URLSearchParams(String(await readWhole(request, 10_000, () => new Error('too large'))))
          const staff = { id: person.id, name: person.name, actorToken: await actorTokenOf(session, person) }
          const note = await supportDesk.ask(desk, staff, form)
          if (note !== undefined) return sendPage(response, 422, askPage(note, form))
          redirect(response, new URL('/support', home))
        }),
        'GET /support/answer': forSupport(async (desk, _request, response) => {
          response.writeHead((await supportDesk.isAnswered(desk)) ? 200 : 204, { 'Cache-Control': 'no-store' }).end()
        }),
        'POST /support/stop': forSupport(async (desk, _request, response) => {
          await supportDesk.stop(desk)
          redirect(response, new URL('/support', home))
        }),
        'POST /sign-out': async (request, response, session) => {
          if (!isOurs(request)) return sendPage(response, 403, problemPage('This form is of another page.'))
          const { person } = session
          delete session.person
          // What was opened with their sign-in ends with it, at the issuer.
          delete session.desk
          // Whatever becomes of the pages that come next: nobody gets tokens by it any more.
          if (person?.refreshToken) await openid.tokenRevocation(config, person.refreshToken)
          const hint = person?.idToken && { id_token_hint: person.idToken }
          redirect(response, openid.buildEndSessionUrl(config, { post_logout_redirect_uri: home.href, ...hint }))
        },
      }
    },
  }
}

/** For whoever tries it: the issuer's own words, where it said something. */
const whyOf = (error: unknown): string => {
  if (isRefusal(error)) return `${error.error}: ${error.error_description ?? ''}`
  if (error instanceof openid.ClientError) return error.cause instanceof Error ? error.cause.message : error.message
  return 'Is the demo still running?'
}

const isRefusal = (error: unknown) =>
  error instanceof openid.ResponseBodyError || error instanceof openid.AuthorizationResponseError
