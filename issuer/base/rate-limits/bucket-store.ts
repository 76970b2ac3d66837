import { type Query, statement } from '../../../platform/database/database.ts'
import { onlyRow } from '../only-row.ts'

/** What a lease gave: tokens, or none and how long until the bucket has one again, in seconds. */
export interface Lease {
  leased: number
  waitSeconds: number
}

// What a bucket holds now: it fills at a constant rate and never over its capacity, the tokens of one minute ($2).
const refilled = `least($2::float8, b.tokens + greatest(0, extract(epoch FROM now() - b.updated_at))::float8 * $2 / 60)`
// A statement that waited for the row began before the last update; time never goes back.
const given = `least($3::integer, floor(${refilled})::integer)`

const select = statement(
  'rate-limit-lease',
  `INSERT INTO rate_limit_buckets AS b (key, tokens, leased, updated_at) VALUES ($1, $2::float8 - $3::integer, $3::integer, now())
   ON CONFLICT (key) DO UPDATE SET
     tokens = ${refilled} - ${given}, leased = ${given}, updated_at = greatest(b.updated_at, now())
   RETURNING leased, CASE WHEN leased > 0 THEN 0 ELSE (1 - tokens) * 60 / $2 END AS "waitSeconds"`,
)

/** Takes up to `block` tokens out of a bucket of `perMinute`; a new bucket is full. One round trip. */
export const leaseTokens = async (query: Query, key: Buffer, perMinute: number, block: number): Promise<Lease> =>
  onlyRow(await query<Lease>(select, [key, perMinute, block]))
