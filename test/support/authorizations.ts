import { createHash, randomBytes } from 'node:crypto'
import { authorizationCode, insertAuthorization } from '../../issuer/tokens/authorizations/authorization-store.ts'
import type { Acr } from '../../issuer/tokens/sessions/session.ts'
import { insertSession } from '../../issuer/tokens/sessions/session-store.ts'
import { newSignInSid } from '../../issuer/tokens/sid.ts'
import { newId, randomToken } from '../../platform/ids.ts'
import type { Answer, FormValues, TestIssuer } from './issuer.ts'
import type { TestApplication } from './issuer-data.ts'

export interface AuthorizationOptions {
  /** Default: one of its own, in which the user signs in. */
  sessionId?: string
  scopes?: readonly string[]
  resources?: readonly string[]
  isOffline?: boolean
  nonce?: string
  redirectUri?: string
  /** False: no challenge was sent. */
  pkce?: boolean
  refreshTtl?: number
  amr?: readonly string[]
  acr?: Acr
}

/** A completed authorization request, whose code waits for its client. */
export interface TestAuthorization {
  /** The claim `sid`. */
  sid: string
  sessionId: string
  userId: string
  code: string
  verifier: string
  /** The code for tokens; members of `form` replace what the right client would send. */
  redeem(form?: FormValues, options?: { client?: TestApplication; instance?: number }): Promise<Answer>
}

export const challengeOf = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url')

export const signIn = async (
  { database }: Pick<TestIssuer, 'database'>,
  userId: string,
  {
    amr = ['pwd'],
    acr = 'urn:surrogate:acr:basic',
    cookie = randomToken(),
    isPersistent = true,
  }: Pick<AuthorizationOptions, 'amr' | 'acr'> & { cookie?: string; isPersistent?: boolean } = {},
): Promise<string> => {
  const id = newId()
  await insertSession(database.query, {
    id,
    cookie,
    userId,
    isPersistent,
    amr,
    acr,
    interaction: {
      interactionEvent: 'SignIn',
      userId,
      verificationRecords: [{ id: 'proof', type: 'Password', verified: true }],
      signInContext: { ip: '198.51.100.7', userAgent: 'A browser' },
    },
    address: '198.51.100.7',
    userAgent: 'A browser',
    idleTtl: 3 * 86_400,
    ttl: 14 * 86_400,
  })
  return id
}

/** What signing in leaves behind, put there directly. Default: offline access to nothing but `openid`. */
export const authorize = async (
  issuer: TestIssuer,
  client: TestApplication,
  userId: string,
  options: AuthorizationOptions = {},
): Promise<TestAuthorization> => {
  const { redirectUri = 'https://app.example.test/callback', isOffline = true, pkce = true } = options
  const sessionId = options.sessionId ?? (await signIn(issuer, userId, options))
  const [sid, code, verifier] = [newSignInSid(), randomToken(), randomBytes(32).toString('base64url')]
  const made = await insertAuthorization(issuer.database.query, {
    id: sid,
    sessionId,
    userId,
    clientId: client.id,
    scopes: options.scopes ?? ['openid', ...(isOffline ? ['offline_access'] : [])],
    resources: options.resources ?? [],
    organizationId: undefined,
    isOffline,
    refreshTtl: options.refreshTtl ?? 14 * 86_400,
    code: authorizationCode(code),
    redirectUri,
    codeChallenge: pkce ? challengeOf(verifier) : undefined,
    nonce: options.nonce,
  })
  if (!made) throw new Error('The session or its user does not count.')
  return {
    sid,
    sessionId,
    userId,
    code,
    verifier,
    redeem: (form = {}, { client: other = client, instance = 0 } = {}) =>
      issuer.token(
        other,
        {
          grant_type: 'authorization_code',
          code,
          redirect_uri: redirectUri,
          ...(pkce && { code_verifier: verifier }),
          ...form,
        },
        { instance },
      ),
  }
}

/** The refresh token for new tokens. */
export const refresh = (
  issuer: TestIssuer,
  client: TestApplication | undefined,
  refreshToken: string,
  form: FormValues = {},
  options?: { instance?: number },
): Promise<Answer> =>
  issuer.token(client, { grant_type: 'refresh_token', refresh_token: refreshToken, ...form }, options)
