import { randomBytes } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import * as openid from 'openid-client'
import { request } from 'undici'
import { listen, type RunningServer } from '../../platform/http/http-server.ts'

/**
 * A web application in which people sign in, as an integrator would write it: a backend for a browser that sees no
 * token. It reads orders through the gateway on behalf of who has signed in. State is in memory, because it is a
 * demonstration.
 */
export interface WebApplication extends RunningServer {
  /** Begins to serve; known once the issuer and the gateway answer. */
  use(settings: WebApplicationSettings): Promise<void>
}

export interface WebApplicationSettings {
  /** The `iss` of its tokens. */
  issuer: string
  client: { clientId: string; clientSecret: string }
  gatewayUrl: string
  /** The resource that it asks a token for. */
  ordersResource: string
}

/** What the server keeps of a browser. */
interface BrowserSession {
  /** Of a sign-in that is under way. */
  pending?: { state: string; nonce: string; verifier: string }
  tokens?: openid.TokenEndpointResponse & openid.TokenEndpointResponseHelpers
  /** When the access token ends, in ms. */
  expiresAt?: number
}

type Page = (request: IncomingMessage, response: ServerResponse, session: BrowserSession) => Promise<void>

const cookieName = 'demo_web'
const scope = 'openid profile offline_access read:orders'

export const startWebApplication = async (options: { host: string; port: number }): Promise<WebApplication> => {
  const sessions = new Map<string, BrowserSession>()
  let pages: Readonly<Record<string, Page>> | undefined

  const sessionOf = (request: IncomingMessage, response: ServerResponse): BrowserSession => {
    const id = new RegExp(`(?:^|; )${cookieName}=([\\w-]+)`).exec(request.headers.cookie ?? '')?.[1] ?? ''
    const known = sessions.get(id)
    if (known) return known
    const made: BrowserSession = {}
    name(made, response)
    return made
  }

  /** Whoever signs in gets another cookie: one that somebody planted before is worth nothing. */
  const rename = (session: BrowserSession, response: ServerResponse) => {
    for (const [id, known] of sessions) if (known === session) sessions.delete(id)
    name(session, response)
  }

  const name = (session: BrowserSession, response: ServerResponse) => {
    const id = randomBytes(32).toString('base64url')
    sessions.set(id, session)
    response.setHeader('Set-Cookie', `${cookieName}=${id}; Path=/; HttpOnly; SameSite=Lax`)
  }

  const handler: RequestListener = (request, response) => {
    // `//` is an address of no host, for one.
    const page = pages?.[`${request.method} ${URL.parse(request.url ?? '/', server.url)?.pathname}`]
    if (!page) return send(response, pages ? 404 : 503, '<p>There is nothing here.</p>')
    page(request, response, sessionOf(request, response)).catch((error: unknown) => {
      const why = error instanceof openid.AuthorizationResponseError ? error.error : 'the request failed'
      send(response, 400, `<p>That did not work: ${escaped(why)}.</p><p><a href="/">Start again</a></p>`)
    })
  }
  const server = await listen({ name: 'the demo web application', setting: 'DEMO_WEB_PORT', handler, ...options })

  return {
    ...server,
    async use({ issuer, client: { clientId, clientSecret }, gatewayUrl, ordersResource }) {
      const config = await openid.discovery(new URL(issuer), clientId, clientSecret, undefined, {
        // The demo's issuer is reached over plain http on this machine.
        execute: [openid.allowInsecureRequests],
      })
      const redirectUri = `${server.url}/callback`
      const keep = (session: BrowserSession, tokens: NonNullable<BrowserSession['tokens']>) => {
        session.tokens = { ...session.tokens, ...tokens }
        session.expiresAt = Date.now() + (tokens.expiresIn() ?? 0) * 1000
      }

      /** The access token for the orders API; a new one when it is about to end. */
      const accessToken = async (session: BrowserSession): Promise<string> => {
        const { refresh_token: refreshToken, access_token: token = '' } = session.tokens ?? {}
        if (refreshToken === undefined || (session.expiresAt ?? 0) > Date.now() + 10_000) return token
        keep(session, await openid.refreshTokenGrant(config, refreshToken, { resource: ordersResource }))
        return session.tokens?.access_token ?? ''
      }

      pages = {
        'GET /': async (_request, response, session) => {
          const claims = session.tokens?.claims()
          if (!claims) return send(response, 200, '<p>You are not signed in.</p><p><a href="/sign-in">Sign in</a></p>')
          const answer = await request(`${gatewayUrl}/orders`, {
            headers: { authorization: `Bearer ${await accessToken(session)}` },
          })
          const name = escaped(String(claims['name'] ?? claims.sub))
          const orders = `<h2>${answer.statusCode} from the orders API</h2><pre>${escaped(await answer.body.text())}</pre>`
          const signOut = '<form method="post" action="/sign-out"><button>Sign out</button></form>'
          send(response, 200, `<p>Signed in as <b>${name}</b>.</p>${orders}${signOut}`)
        },
        'GET /sign-in': async (_request, response, session) => {
          const [state, nonce, verifier] = [openid.randomState(), openid.randomNonce(), openid.randomPKCECodeVerifier()]
          session.pending = { state, nonce, verifier }
          const code_challenge = await openid.calculatePKCECodeChallenge(verifier)
          const proof = { state, nonce, code_challenge, code_challenge_method: 'S256' }
          const asked = { redirect_uri: redirectUri, scope, resource: ordersResource, ...proof }
          redirect(response, openid.buildAuthorizationUrl(config, asked))
        },
        'GET /callback': async (request, response, session) => {
          const { pending } = session
          if (!pending) return redirect(response, new URL('/', server.url))
          delete session.pending
          const checks = {
            expectedState: pending.state,
            expectedNonce: pending.nonce,
            pkceCodeVerifier: pending.verifier,
          }
          const url = new URL(request.url ?? '', server.url)
          keep(session, await openid.authorizationCodeGrant(config, url, checks, { resource: ordersResource }))
          rename(session, response)
          redirect(response, new URL('/', server.url))
        },
        // The cookie is not sent with a POST from another site.
        'POST /sign-out': async (_request, response, session) => {
          const hint = session.tokens?.id_token
          delete session.tokens
          const back = { post_logout_redirect_uri: `${server.url}/`, ...(hint && { id_token_hint: hint }) }
          redirect(response, openid.buildEndSessionUrl(config, back))
        },
      }
    },
  }
}

const redirect = (response: ServerResponse, to: URL) => {
  response.writeHead(303, { Location: to.href, 'Cache-Control': 'no-store' }).end()
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const escaped = (text: string) => text.replace(/[&<>"]/g, (character) => entities[character] ?? '')

const styles = 'body{font:1rem/1.5 system-ui;max-width:44rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark}'

const send = (response: ServerResponse, status: number, body: string) => {
  const html = `<!doctype html><html lang="en"><title>Demo shop</title><style>${styles}</style><h1>Demo shop</h1>${body}</html>`
  response.writeHead(status, { 'Content-Type': 'text/html; charset=utf-8', 'Cache-Control': 'no-store' }).end(html)
}
