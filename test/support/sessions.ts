import { insertAuthorization } from '../../issuer/tokens/authorizations/authorization-store.ts'
import { insertSession } from '../../issuer/tokens/sessions/session-store.ts'
import { newSignInSid } from '../../issuer/tokens/sid.ts'
import { tokenDigest } from '../../issuer/tokens/token-digest.ts'
import { newId, randomToken } from '../../platform/ids.ts'
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

const day = 86_400

/** Puts the rows there that signing in leaves behind. */
export const createSessions = ({ database: { query }, createUser, sql }: TestIssuer): Sessions => ({
  async signIn({ userId, isPersistent = true } = {}) {
    const session = { id: newId(), userId: userId ?? (await createUser()).id, cookie: randomToken() }
    await insertSession(query, {
      ...session,
      isPersistent,
      amr: ['pwd'],
      acr: 'urn:surrogate:acr:basic',
      interaction: {
        interactionEvent: 'SignIn',
        userId: session.userId,
        verificationRecords: [{ id: 'proof', type: 'Password', verified: true }],
        signInContext: { ip: '203.0.113.7', userAgent: 'A browser' },
      },
      address: '203.0.113.7',
      userAgent: 'A browser',
      idleTtl: 3 * day,
      ttl: 14 * day,
    })
    return session
  },
  async authorize(session, client, { isOffline = false, scopes = ['openid', 'profile'] } = {}) {
    const id = newSignInSid()
    const made = await insertAuthorization(query, {
      id,
      sessionId: session.id,
      userId: session.userId,
      clientId: client.id,
      scopes,
      resources: [],
      organizationId: undefined,
      isOffline,
      refreshTtl: 14 * day,
      code: randomToken(),
      redirectUri: 'https://app.example.test/callback',
      codeChallenge: undefined,
      nonce: undefined,
    })
    if (!made) throw new Error('The session does not count.')
    return id
  },
  async refreshToken(sid) {
    const value = randomToken()
    await sql(
      `INSERT INTO refresh_tokens (digest, authorization_id, expires_at) VALUES ($1, $2, now() + interval '14 days')`,
      [tokenDigest('refresh-token', value), sid],
    )
    return value
  },
  async isOver(table, id) {
    const [row] = await sql<{ ended_at: Date | null }>(`SELECT ended_at FROM ${table} WHERE id = $1`, [id])
    return row!.ended_at !== null
  },
})
