import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import type { Envelope } from '../../platform/envelope.ts'
import { randomToken } from '../../platform/ids.ts'
import { managementScopes } from '../base/authorization.ts'
import type { RequestOrigin } from '../base/client-address.ts'
import { consoleClientId } from '../base/console-roles.ts'
import { OAuthError } from '../base/errors/problems.ts'
import { type ConsoleCookies, signInSeconds } from './cookies.ts'
import type { ConsoleClient, ConsoleSessions } from './sessions.ts'

/** The way in: a code flow of our own, with PKCE, as any application goes it. */
export interface ConsoleSignIn {
  begin(request: IncomingMessage): Redirect
  /** What the issuer answered. */
  callback(request: IncomingMessage, origin: RequestOrigin): Promise<Redirect | Refused>
}

export interface Redirect {
  location: string
  setCookies: readonly string[]
}

export interface Refused {
  /** `unknown`: not begun in this browser. `refused`: the issuer said no. `no_role`: not for this person. */
  refused: 'unknown' | 'refused' | 'no_role'
  setCookies: readonly string[]
}

export interface SignInDependencies {
  envelope: Envelope
  cookies: ConsoleCookies
  sessions: ConsoleSessions
  client: ConsoleClient
  /** Where browsers reach the issuer. */
  baseUrl: string
  /** Where browsers reach the console: an origin. */
  consoleUrl: string
  now(): Date
}

const home = '/console/'

/** In seconds: younger than what step-up asks for, so that there is time to do it. */
const stepUpMaxAge = 60

const scope = ['openid', ...Object.keys(managementScopes)].join(' ')

/** What a browser keeps of a sign-in that it has begun. */
const begun = z.object({ verifier: z.string(), returnTo: z.string(), until: z.number() })
const sealedFor = (state: string) => `console-sign-in:${state}`

export const createConsoleSignIn = (dependencies: SignInDependencies): ConsoleSignIn => {
  const { envelope, cookies, sessions, client, baseUrl, consoleUrl, now } = dependencies

  /** A page of the console, whatever was asked for. */
  const returnToOf = (asked: string | null): string => {
    if (asked === null || !URL.canParse(asked, consoleUrl)) return home
    const { origin, pathname, search, hash } = new URL(asked, consoleUrl)
    const isPage = pathname === '/console' || pathname.startsWith(home)
    return origin === consoleUrl &&
      isPage &&
      !/^\/console\/((sign-in|callback)$|(api|session|assets|gateways)\/)/.test(pathname)
      ? pathname + search + hash
      : home
  }

  const parametersOf = ({ url = '' }: IncomingMessage) => new URL(url, consoleUrl).searchParams

  const readBegun = (request: IncomingMessage, state: string) => {
    const sealed = cookies.signIn(request, state)
    if (sealed === undefined) return undefined
    try {
      const text = envelope.open(Buffer.from(sealed, 'base64url'), sealedFor(state)).toString()
      const found = begun.parse(JSON.parse(text))
      return found.until > now().getTime() ? found : undefined
    } catch {
      // Not of our making, or under a key that is gone.
      return undefined
    }
  }

  return {
    begin(request) {
      const parameters = parametersOf(request)
      const [state, verifier] = [randomToken(), randomToken()]
      const returnTo = returnToOf(parameters.get('return_to'))
      const until = now().getTime() + signInSeconds * 1_000
      const sealed = envelope.seal(JSON.stringify({ verifier, returnTo, until }), sealedFor(state))
      const asking = new URLSearchParams({
        client_id: consoleClientId,
        redirect_uri: `${consoleUrl}/console/callback`,
        response_type: 'code',
        scope,
        resource: `${baseUrl}/api`,
        state,
        code_challenge: createHash('sha256').update(verifier).digest('base64url'),
        code_challenge_method: 'S256',
        ...(parameters.get('step_up') === 'true' && { max_age: String(stepUpMaxAge) }),
        // For who is signed in as somebody without a role.
        ...(parameters.get('as') === 'another' && { prompt: 'login' }),
      })
      return {
        location: `${baseUrl}/oidc/auth?${asking}`,
        setCookies: [...cookies.clearExcess(request), cookies.setSignIn(state, sealed.toString('base64url'))],
      }
    },

    async callback(request, origin) {
      const parameters = parametersOf(request)
      const state = parameters.get('state') ?? ''
      const waiting = readBegun(request, state)
      const setCookies = waiting ? [cookies.clearSignIn(state)] : []
      // RFC 9207 §2.4: the answer of another issuer is none.
      if (!waiting || parameters.get('iss') !== `${baseUrl}/oidc`) return { refused: 'unknown', setCookies }
      const code = parameters.get('code')
      if (code === null) return { refused: 'refused', setCookies }
      const tokens = await client.redeem(code, waiting.verifier, origin).catch((error: unknown) => {
        if (error instanceof OAuthError && error.status < 500) return undefined
        throw error
      })
      if (!tokens) return { refused: 'refused', setCookies }
      if (tokens.scopes.length === 0) return { refused: 'no_role', setCookies }
      // What was signed in before, such as before stepping up, is over.
      const before = cookies.session(request)
      if (before !== undefined) await sessions.end(before)
      const cookie = await sessions.open(tokens)
      return { location: waiting.returnTo, setCookies: [...setCookies, cookies.setSession(cookie)] }
    },
  }
}
