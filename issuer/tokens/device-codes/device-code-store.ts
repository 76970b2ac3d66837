import { type Query, statement } from '../../../platform/database/database.ts'

/** How long a device may wait for its person (RFC 8628 §3.2), and between two polls at first (§3.5). In seconds. */
export const deviceCodeTtl = 600
export const firstPollInterval = 5

/** What a device that polls too often must wait longer each time (§3.5), and at the most, in seconds. */
const slowDownSeconds = 5
const longestInterval = 60
/** What comes this much early is on time: networks are not always as fast. In seconds. */
const earliness = 1

export interface NewDeviceCode {
  digest: Buffer
  /** HMAC of the user code. */
  userCode: Buffer
  clientId: string
  /** JSON. */
  request: string
  /** Where it was asked from. */
  address: string
}

const insert = statement(
  'device-code-insert',
  `INSERT INTO device_codes (digest, user_code, client_id, request, address, poll_interval, expires_at)
   VALUES ($1, $2, $3, $4::jsonb, $5, ${firstPollInterval}, now() + interval '${deviceCodeTtl} seconds')
   ON CONFLICT ON CONSTRAINT device_codes_user_code DO NOTHING RETURNING digest`,
)

/** False when somebody else has this user code. */
export const insertDeviceCode = async (query: Query, code: NewDeviceCode): Promise<boolean> =>
  (await query(insert, [code.digest, code.userCode, code.clientId, code.request, code.address])).length > 0

const isOpen = 'decided_at IS NULL AND expires_at > now()'

const find = statement(
  'device-code-find',
  `SELECT encode(digest, 'hex') AS digest, client_id AS "clientId", request, address,
     extract(epoch FROM created_at)::float8 * 1000 AS "createdAt"
   FROM device_codes WHERE user_code = $1 AND ${isOpen}`,
)

export interface OpenDeviceCode {
  /** In hexadecimal. */
  digest: string
  clientId: string
  request: unknown
  address: string
  /** In ms since 1970. */
  createdAt: number
}

/** Undefined when there is none that waits for a decision. */
export const findOpenDeviceCode = async (query: Query, userCode: Buffer): Promise<OpenDeviceCode | undefined> =>
  (await query<OpenDeviceCode>(find, [userCode]))[0]

// Without a lock two who decide at once would both succeed.
const decide = statement(
  'device-code-decide',
  `UPDATE device_codes SET decided_at = now(), is_allowed = $2 WHERE digest = $1 AND ${isOpen}
   RETURNING ceil(extract(epoch FROM expires_at - now()))::integer AS "secondsLeft"`,
)

/** How long its device may still ask, in seconds; undefined when it is too late, or somebody has decided before. */
export const decideDeviceCode = async (query: Query, digest: Buffer, isAllowed: boolean): Promise<number | undefined> =>
  (await query<{ secondsLeft: number }>(decide, [digest, isAllowed]))[0]?.secondsLeft

export interface Poll {
  isTooSoon: boolean
  isExpired: boolean
  /** Null: nobody has decided. */
  isAllowed: boolean | null
}

const tooSoon = `coalesce(polled_at > clock_timestamp() - (poll_interval - ${earliness}) * interval '1 second', false)`

// clock_timestamp: two polls at once wait for each other's row, and the second is judged by what the first has written.
const poll = statement(
  'device-code-poll',
  `UPDATE device_codes SET polled_at = clock_timestamp(), is_too_soon = ${tooSoon},
     poll_interval = CASE WHEN ${tooSoon} THEN least(poll_interval + ${slowDownSeconds}, ${longestInterval}) ELSE poll_interval END
   WHERE digest = $1 AND client_id = $2
   RETURNING is_too_soon AS "isTooSoon", expires_at <= now() AS "isExpired", is_allowed AS "isAllowed"`,
)

/** Counts a poll of this client's; undefined when it has no such code. */
export const pollDeviceCode = async (query: Query, digest: Buffer, clientId: string): Promise<Poll | undefined> =>
  (await query<Poll>(poll, [digest, clientId]))[0]
