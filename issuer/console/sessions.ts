import { z } from 'zod'
import type { Database } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import { newId, randomToken } from '../../platform/ids.ts'
import type { RequestOrigin } from '../base/client-address.ts'
import { OAuthError, problem } from '../base/errors/problems.ts'
import {
  type ConsoleSession,
  consoleSessionContext,
  deleteConsoleSession,
  type EndedConsoleSession,
  findConsoleSession,
  insertConsoleSession,
  renewConsoleSession,
  touchConsoleSession,
} from './session-store.ts'

/** What the code flow gave to the console, for a person. */
export interface ConsoleTokens {
  accessToken: string
  refreshToken: string
  userId: string
  /** The authorization that they came of. */
  authorizationId: string
  scopes: readonly string[]
  expiresAt: Date
}

/** The console as a client of this issuer. Both throw `OAuthError`. */
export interface ConsoleClient {
  redeem(code: string, verifier: string, origin: RequestOrigin): Promise<ConsoleTokens>
  refresh(refreshToken: string, origin: RequestOrigin): Promise<ConsoleTokens>
}

export interface ConsoleSessions {
  /** Answers the value of the cookie: always a new one, whatever the browser had before. */
  open(tokens: ConsoleTokens): Promise<string>
  /** Throws 401 `console.signed_out` unless the session counts and its person has a role of the console. */
  require(cookie: string | undefined): Promise<ConsoleSession>
  /** The session, if it counts and its person has a role. To ask is no use of it. */
  peek(cookie: string | undefined): Promise<ConsoleSession | undefined>
  /** The access token, with the permissions that the person has now. Throws 401 `console.signed_out`. */
  accessToken(session: ConsoleSession, origin: RequestOrigin): Promise<string>
  /** Whether the session goes on, with all that its person was allowed. To ask is no use of it. */
  stillAllows(cookie: string | undefined, before: Pick<ConsoleSession, 'scopes'>): Promise<boolean>
  end(cookie: string): Promise<EndedConsoleSession | undefined>
}

const sealedTokens = z.object({ accessToken: z.string(), refreshToken: z.string() })

/** In seconds: an access token is replaced before it expires under way. */
const leewaySeconds = 30

export const createConsoleSessions = ({
  database: { query },
  envelope,
  client,
  indicator,
}: {
  database: Pick<Database, 'query'>
  envelope: Envelope
  client: ConsoleClient
  /** Of the Management API. */
  indicator: string
}): ConsoleSessions => {
  const rowOf = (id: string, { accessToken, refreshToken, scopes, expiresAt }: ConsoleTokens) => ({
    sealed: envelope.seal(JSON.stringify({ accessToken, refreshToken }), consoleSessionContext(id)),
    scopes,
    tokenExpiresAt: expiresAt,
  })
  const open = ({ id, sealed }: ConsoleSession) =>
    sealedTokens.parse(JSON.parse(envelope.open(sealed, consoleSessionContext(id)).toString()))

  const peek: ConsoleSessions['peek'] = async (cookie) => {
    const session = cookie === undefined ? undefined : await findConsoleSession(query, cookie, indicator)
    // Without a role there is nothing to see here.
    return session && session.scopes.length > 0 ? session : undefined
  }

  return {
    peek,

    async open(tokens) {
      const [id, cookie] = [newId(), randomToken()]
      const { userId, authorizationId } = tokens
      await insertConsoleSession(query, { id, cookie, userId, authorizationId, ...rowOf(id, tokens) })
      return cookie
    },

    async require(cookie) {
      const session = await peek(cookie)
      if (!session) throw problem('console.signed_out')
      await touchConsoleSession(query, session.id)
      return session
    },

    // The refresh token of the console stays as it is, so several requests may use it at once, on any instance; which
    // of their access tokens is kept does not matter.
    async accessToken(session, origin) {
      const { accessToken, refreshToken } = open(session)
      const lacksOne = session.scopes.some((name) => !session.tokenScopes.includes(name))
      if (!lacksOne && session.tokenLeft > leewaySeconds) return accessToken
      const next = await client.refresh(refreshToken, origin).catch((cause: unknown) => {
        if (cause instanceof OAuthError && cause.status < 500) throw problem('console.signed_out', { cause })
        throw cause
      })
      await renewConsoleSession(query, session, rowOf(session.id, next))
      return next.accessToken
    },

    async stillAllows(cookie, before) {
      const session = await peek(cookie)
      return session !== undefined && before.scopes.every((name) => session.scopes.includes(name))
    },

    end: (cookie) => deleteConsoleSession(query, cookie),
  }
}
