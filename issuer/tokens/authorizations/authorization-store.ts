import type { Query } from '../../../platform/database/database.ts'
import { bytea, sharedStatement } from '../../../platform/database/shared-statement.ts'
import { sessionCounts } from '../sessions/session-store.ts'
import { tokenDigest } from '../token-digest.ts'

/** An SQL condition: the authorization `a` counts. One without offline access needs its session. */
export const authorizationCounts = (a: string): string =>
  `(${a}.ended_at IS NULL AND ${a}.expires_at > now() AND (${a}.is_offline OR EXISTS (
     SELECT FROM sessions s WHERE s.id = ${a}.session_id AND ${sessionCounts('s')})))`

/** How long a code that a browser brings may be redeemed, in seconds. */
export const codeTtl = 60

/** What a client redeems, by its digest. */
export interface GrantedCode {
  digest: Buffer
  /** In seconds. */
  ttl: number
}

export const authorizationCode = (code: string): GrantedCode => ({
  digest: tokenDigest('authorization-code', code),
  ttl: codeTtl,
})

/** A completed authorization request, and the code that its client gets for it. */
export interface NewAuthorization {
  /** The claim `sid`; see `newSignInSid`. */
  id: string
  sessionId: string
  userId: string
  clientId: string
  /** Granted, in the order of the request. */
  scopes: readonly string[]
  /** Indicators. */
  resources: readonly string[]
  organizationId: string | undefined
  /** It outlives its session. */
  isOffline: boolean
  /** Of its refresh tokens, in seconds. */
  refreshTtl: number
  code: GrantedCode
  redirectUri: string
  codeChallenge: string | undefined
  nonce: string | undefined
  /** Thumbprint of the key that the code is bound to (RFC 9449 §10). */
  jkt?: string | undefined
}

// The shared locks decide the order: either what ends the session or suspends the user ends this authorization too, or
// it is not made. Users are locked before sessions, as everybody does, because which sessions to lock depends on them;
// `array_position` keeps that out of the indexes, which would be read first.
const insert = sharedStatement(
  'authorization-insert',
  {
    id: 'text',
    session_id: 'text',
    user_id: 'text',
    client_id: 'text',
    scopes: 'text[]',
    resources: 'text[]',
    organization_id: 'text',
    is_offline: 'boolean',
    refresh_ttl: 'integer',
    code: 'bytea',
    code_ttl: 'integer',
    redirect_uri: 'text',
    code_challenge: 'text',
    nonce: 'text',
    jkt: 'text',
  },
  (asked) => `WITH asked AS MATERIALIZED (SELECT * FROM ${asked}),
   people AS MATERIALIZED (
     SELECT id FROM users WHERE id = ANY (ARRAY(SELECT user_id FROM asked)) AND NOT is_suspended ORDER BY id FOR SHARE),
   live AS MATERIALIZED (
     SELECT s.id, s.user_id, s.authenticated_at, s.amr, s.acr, s.interaction, s.expires_at FROM sessions s
     WHERE s.id = ANY (ARRAY(SELECT session_id FROM asked))
       AND array_position(ARRAY(SELECT id FROM people), s.user_id) IS NOT NULL AND ${sessionCounts('s')}
     ORDER BY s.id FOR SHARE),
   made AS (
     INSERT INTO authorizations (id, session_id, user_id, client_id, scopes, resources, organization_id, is_offline,
       authenticated_at, amr, acr, interaction, expires_at)
     SELECT asked.id, live.id, live.user_id, asked.client_id, asked.scopes, asked.resources, asked.organization_id,
       asked.is_offline, live.authenticated_at, live.amr, live.acr, live.interaction,
       CASE WHEN asked.is_offline THEN now() + asked.refresh_ttl * interval '1 second' ELSE live.expires_at END
     FROM asked JOIN live ON live.id = asked.session_id AND live.user_id = asked.user_id
       JOIN people ON people.id = asked.user_id
     RETURNING id),
   code AS (
     INSERT INTO authorization_codes (digest, authorization_id, client_id, redirect_uri, code_challenge, nonce, jkt, expires_at)
     SELECT asked.code, asked.id, asked.client_id, asked.redirect_uri, asked.code_challenge, asked.nonce, asked.jkt,
       now() + asked.code_ttl * interval '1 second'
     FROM asked JOIN made ON made.id = asked.id)
   SELECT asked.n FROM asked JOIN made ON made.id = asked.id`,
)

/** False when the session has ended, or its user is suspended or deleted. */
export const insertAuthorization = async (query: Query, authorization: NewAuthorization): Promise<boolean> => {
  const made = await query(insert, [
    {
      id: authorization.id,
      session_id: authorization.sessionId,
      user_id: authorization.userId,
      client_id: authorization.clientId,
      scopes: authorization.scopes,
      resources: authorization.resources,
      organization_id: authorization.organizationId,
      is_offline: authorization.isOffline,
      refresh_ttl: authorization.refreshTtl,
      code: bytea(authorization.code.digest),
      code_ttl: authorization.code.ttl,
      redirect_uri: authorization.redirectUri,
      code_challenge: authorization.codeChallenge,
      nonce: authorization.nonce,
      jkt: authorization.jkt,
    },
  ])
  return made.length > 0
}
