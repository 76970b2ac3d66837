import { type Query, queryOf, statement, type Transaction } from '../../../platform/database/database.ts'
import { onlyRow } from '../../base/only-row.ts'

/**
 * Revocations as one numbered list that anybody can follow: whoever has read up to a number has seen everything up to
 * it. That holds because a number is taken while holding one advisory lock until commit; otherwise a transaction could
 * take 7, be slow, and commit after a reader has seen 8 and gone on.
 */
export type NewRevocation =
  /**
   * One token, or all tokens of a session; `expiresAt` is when the last of them ends. Default: when one that was issued
   * just now would.
   */
  | { kind: 'jti' | 'sid'; value: string; expiresAt?: Date }
  /** Every token issued until now: to or acted with by a user, or to a client. */
  | { kind: 'sub' | 'client'; value: string }

/** An entry of the feed. Times in seconds, as in tokens. */
export interface Revocation {
  seq: number
  kind: 'jti' | 'sid' | 'sub' | 'client'
  value: string
  /** For `sub` and `client`: tokens with `iat <= issuedBefore`. Null: all. */
  issuedBefore: number | null
  expiresAt: number
}

export interface RevocationPage {
  entries: Revocation[]
  /** The number to go on from. */
  cursor: number
  /** There is another page at once. */
  more: boolean
}

/** NOTIFY channel: something was committed. */
export const revocationChannel = 'surrogate_revocations'

/** Verifiers allow clocks to differ, at most 120 s, so a revocation outlives what it revokes by this much. */
const margin = `interval '5 minutes'`

// How long a token issued just now may live. The floor covers those issued before a resource got a shorter life or was
// deleted.
const longestLife = `greatest(interval '7 days', (SELECT max(access_token_ttl) FROM resources) * interval '1 second')`

// `lock` yields the row that numbering waits for. clock_timestamp, not now(): the transaction may have begun before
// tokens were issued that it was then made to wait for.
const insert = statement(
  'revocations-insert',
  `WITH lock AS MATERIALIZED (SELECT pg_advisory_xact_lock(7305174)),
   added AS (
     INSERT INTO revocations (seq, kind, value, issued_before, expires_at)
     SELECT nextval('revocation_numbers'), kind, value,
       CASE WHEN kind IN ('sub', 'client') THEN clock_timestamp() END,
       COALESCE(expires_at, clock_timestamp() + ${longestLife}) + ${margin}
     FROM lock, unnest($1::text[], $2::text[], $3::timestamptz[]) AS entry (kind, value, expires_at)
     ON CONFLICT (kind, value) WHERE issued_before IS NULL DO NOTHING
     RETURNING seq)
   SELECT count, CASE WHEN count > 0 THEN pg_notify('${revocationChannel}', '') END FROM (SELECT count(*) FROM added) AS counted`,
)

/**
 * Revokes in the caller's transaction; instances are notified at commit. Call it last: revoking transactions wait for
 * each other, so holding other locks could deadlock. What is revoked already stays as it is. Returns how many entries
 * are new.
 */
export const revoke = async (transaction: Transaction, entries: readonly NewRevocation[]): Promise<number> => {
  if (entries.length === 0) return 0
  const added = await queryOf(transaction)<{ count: number | string }>(insert, [
    entries.map(({ kind }) => kind),
    entries.map(({ value }) => value),
    entries.map((entry) => ('expiresAt' in entry ? (entry.expiresAt ?? null) : null)),
  ])
  return Number(onlyRow(added).count)
}

const seconds = (column: string) => `floor(extract(epoch FROM ${column}))::float8`

// A reader that is ahead of the numbers has followed a database that was since restored from a backup: it gets
// everything.
const page = statement(
  'revocations-page',
  `SELECT seq, kind, value, ${seconds('issued_before')} AS "issuedBefore", ${seconds('expires_at')} AS "expiresAt"
   FROM revocations
   WHERE seq > CASE WHEN $1::bigint > (SELECT last_value FROM revocation_numbers) THEN 0 ELSE $1::bigint END
     AND expires_at > now()
   ORDER BY seq LIMIT $2`,
)

/**
 * Unexpired entries after `since`, in order. `cursor` may be lower than `since` (see above): go on from it all the
 * same.
 */
export const readRevocations = async (query: Query, since: number, limit: number): Promise<RevocationPage> => {
  const rows = await query<Revocation>(page, [since, limit + 1])
  const entries = rows.slice(0, limit)
  return { entries, cursor: entries.at(-1)?.seq ?? since, more: rows.length > limit }
}

const last = statement('revocations-last', `SELECT COALESCE(max(seq), 0) AS seq FROM revocations`)

/** The highest number that has been committed and is kept. */
export const lastRevocation = async (query: Query): Promise<number> =>
  onlyRow(await query<{ seq: number }>(last, [])).seq

/**
 * An SQL expression: the last second whose tokens are revoked for one of `values` (an array), or NULL. See `issueTime`.
 */
export const revokedUntil = (kind: 'sub' | 'client', values: string): string =>
  `(SELECT ${seconds('max(issued_before)')} FROM revocations WHERE kind = '${kind}' AND value = ANY (${values}))`

/**
 * An SQL expression: JSON of the revocations with one of `values` (an array) as value, or NULL; see `isRevokedBy`. One
 * look into an index.
 */
export const revocationsOf = (values: string): string =>
  `(SELECT json_agg(json_build_object('kind', kind, 'value', value, 'issuedBefore', extract(epoch FROM issued_before)))
    FROM revocations WHERE value = ANY (${values}))`

/**
 * SQL expressions of what a token carries; `people` is an array: the subject and everybody in the `act` chain. `iat` is
 * a timestamp.
 */
export interface TokenColumns {
  jti: string
  sid: string
  people: string
  client: string
  iat: string
}

/** An SQL condition: a revocation concerns the token. One look into an index. */
export const revokedCondition = ({ jti, sid, people, client, iat }: TokenColumns): string =>
  `EXISTS (SELECT FROM revocations WHERE value = ANY (${people} || ARRAY[${jti}, ${sid}, ${client}]::text[])
     AND CASE kind WHEN 'jti' THEN value = ${jti} WHEN 'sid' THEN value = ${sid}
       WHEN 'sub' THEN value = ANY (${people}) AND issued_before >= ${iat} ELSE value = ${client} AND issued_before >= ${iat} END)`
