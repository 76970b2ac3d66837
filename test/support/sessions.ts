import { tokenDigest } from '../../issuer/tokens/token-digest.ts'
import { randomToken } from '../../platform/ids.ts'
import { authorize, signIn } from './authorizations.ts'
import type { TestIssuer } from './issuer.ts'
import type { TestApplication } from './issuer-data.ts'

/** A person who has signed in, in a browser of their own. */
export interface TestSession {
  id: string
  userId: string
  /** The value of its cookie. */
  cookie: string
}

export interface Sessions {
  /** Of a new user, unless one is named. */
  signIn(options?: { userId?: string; isPersistent?: boolean }): Promise<TestSession>
  /** An authorization of an application in it. Answers its `sid`. */
  authorize(
    session: TestSession,
    client: TestApplication,
    options?: { isOffline?: boolean; scopes?: string[] },
  ): Promise<string>
  /** The value of a refresh token of an authorization. */
  refreshToken(sid: string): Promise<string>
  isOver(table: 'sessions' | 'authorizations', id: string): Promise<boolean>
}

/** Puts the rows there that signing in leaves behind. */
export const createSessions = (issuer: TestIssuer): Sessions => ({
  async signIn({ userId, isPersistent = true } = {}) {
    const person = userId ?? (await issuer.createUser()).id
    const cookie = randomToken()
    return { id: await signIn(issuer, person, { cookie, isPersistent }), userId: person, cookie }
  },
  async authorize({ id: sessionId, userId }, client, { isOffline = false, scopes = ['openid', 'profile'] } = {}) {
    const { sid } = await authorize(issuer, client, userId, { sessionId, isOffline, scopes, pkce: false })
    return sid
  },
  async refreshToken(sid) {
    const value = randomToken()
    await issuer.sql(
      `INSERT INTO refresh_tokens (digest, authorization_id, expires_at) VALUES ($1, $2, now() + interval '14 days')`,
      [tokenDigest('refresh-token', value), sid],
    )
    return value
  },
  async isOver(table, id) {
    const [row] = await issuer.sql<{ ended_at: Date | null }>(`SELECT ended_at FROM ${table} WHERE id = $1`, [id])
    return row!.ended_at !== null
  },
})
