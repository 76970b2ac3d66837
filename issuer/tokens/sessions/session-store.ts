import { type Query, statement } from '../../../platform/database/database.ts'
import { tokenDigest } from '../token-digest.ts'
import type { Session } from './session.ts'

/** An SQL condition: the session `s` counts. Whether its user does is a question of its own. */
export const sessionCounts = (s: string): string =>
  `(${s}.ended_at IS NULL AND ${s}.expires_at > now() AND ${s}.last_seen_at + ${s}.idle_ttl * interval '1 second' > now())`

/** The session of a cookie that counts. */
export interface FoundSession extends Session {
  /** Seconds since the person authenticated. */
  age: number
  /** The cookie is the one before the last rotation. */
  isPrevious: boolean
  /** Its cookie is a day old, so another one is due. */
  isRotationDue: boolean
  /** That it was seen was last written a minute ago. */
  isTouchDue: boolean
}

const select = statement(
  'session-find',
  `SELECT s.id, s.user_id AS "userId", s.is_persistent AS "isPersistent", s.authenticated_at AS "authenticatedAt",
     s.amr, s.acr, s.interaction, s.created_at AS "createdAt", s.expires_at AS "expiresAt",
     extract(epoch FROM now() - s.authenticated_at)::float8 AS age, s.digest <> $1 AS "isPrevious",
     s.rotated_at < now() - interval '1 day' AND s.digest = $1 AS "isRotationDue",
     s.last_seen_at < now() - interval '1 minute' AS "isTouchDue"
   FROM sessions s JOIN users u ON u.id = s.user_id AND NOT u.is_suspended
   WHERE (s.digest = $1 OR (s.previous_digest = $1 AND s.previous_until > now())) AND ${sessionCounts('s')}`,
)

/** Undefined when the value is unknown, its session has ended, or its user is suspended. */
export const findSession = async (query: Query, cookie: string): Promise<FoundSession | undefined> =>
  (await query<FoundSession>(select, [tokenDigest('session', cookie)]))[0]

/** Who signed in, how, and for how long. */
export interface SignedIn {
  id: string
  /** The value of the cookie. */
  cookie: string
  userId: string
  isPersistent: boolean
  amr: readonly string[]
  acr: Session['acr']
  interaction: Session['interaction']
  address: string
  userAgent: string | undefined
  /** In seconds. */
  idleTtl: number
  ttl: number
}

export type SessionTimes = Pick<Session, 'authenticatedAt' | 'expiresAt'>

const times = `authenticated_at AS "authenticatedAt", expires_at AS "expiresAt"`

const valuesOf = (session: SignedIn) => [
  session.id,
  tokenDigest('session', session.cookie),
  session.userId,
  session.isPersistent,
  session.amr,
  session.acr,
  JSON.stringify(session.interaction),
  session.address,
  session.userAgent?.slice(0, 512) ?? null,
  session.idleTtl,
  session.ttl,
]

// clock_timestamp: the transaction may have waited for a lock since the person was authenticated.
const insert = statement(
  'session-insert',
  `INSERT INTO sessions (id, digest, user_id, is_persistent, authenticated_at, amr, acr, interaction, first_address,
     last_address, user_agent, idle_ttl, expires_at)
   VALUES ($1, $2, $3, $4, clock_timestamp(), $5::text[], $6, $7::jsonb, $8, $8, $9, $10,
     clock_timestamp() + $11 * interval '1 second')
   RETURNING ${times}`,
)

export const insertSession = async (query: Query, session: SignedIn): Promise<SessionTimes> => {
  const [row] = await query<SessionTimes>(insert, valuesOf(session))
  return row!
}

const renew = statement(
  'session-renew',
  `UPDATE sessions s SET digest = $2, previous_digest = NULL, previous_until = NULL, rotated_at = clock_timestamp(),
     is_persistent = $4, authenticated_at = clock_timestamp(), amr = $5::text[], acr = $6, interaction = $7::jsonb,
     last_address = $8, user_agent = $9, last_seen_at = clock_timestamp(), idle_ttl = $10,
     expires_at = clock_timestamp() + $11 * interval '1 second'
   WHERE id = $1 AND user_id = $3 AND ${sessionCounts('s')}
   RETURNING ${times}`,
)

/**
 * The same person signs in again, or steps up: another cookie, and the old one is dead at once. Undefined when the
 * session has ended meanwhile.
 */
export const renewSession = async (query: Query, session: SignedIn): Promise<SessionTimes | undefined> =>
  (await query<SessionTimes>(renew, valuesOf(session)))[0]

const rotate = statement(
  'session-rotate',
  `UPDATE sessions s SET digest = $3, previous_digest = $2, previous_until = now() + interval '60 seconds', rotated_at = now()
   WHERE id = $1 AND digest = $2 AND ${sessionCounts('s')} RETURNING id`,
)

/** The old cookie works for 60 s more: the browser may have other requests under way. False: it was not current. */
export const rotateSession = async (
  query: Query,
  { id, from, to }: { id: string; from: string; to: string },
): Promise<boolean> => (await query(rotate, [id, tokenDigest('session', from), tokenDigest('session', to)])).length > 0

const touch = statement(
  'session-touch',
  `UPDATE sessions SET last_seen_at = now(), last_address = $2
   WHERE id = $1 AND ended_at IS NULL AND last_seen_at < now() - interval '1 minute'`,
)

/** Notes that the browser was seen, at most once a minute. */
export const touchSession = async (query: Query, { id, address }: { id: string; address: string }): Promise<void> => {
  await query(touch, [id, address])
}
