import { type Query, statement } from '../../platform/database/database.ts'

/** Where hooks point, and whether anything may be sent to them now. */
export interface SealedTarget {
  id: string
  url: string
  /** In hex. */
  sealedHeaders: string | null
  /** In hex, newest first, with a space between. */
  sealedKeys: string
  /** Enabled, and its receiver has not asked for silence. */
  active: boolean
  /** Its POSTs are counted, or its circuit breaker lets only probes through. */
  gated: boolean
  /** Its last POST failed. */
  failing: boolean
}

const targets = statement(
  'targets',
  `SELECT hooks.id, url, encode(sealed_headers, 'hex') AS "sealedHeaders", (
     SELECT coalesce(string_agg(encode(sealed, 'hex'), ' ' ORDER BY hook_signing_keys.expires_at DESC NULLS FIRST), '') FROM hook_signing_keys
     WHERE hook_id = hooks.id AND (expires_at IS NULL OR expires_at > now())) AS "sealedKeys",
     enabled AND (paused_until IS NULL OR paused_until <= now()) AS active, gated,
     failures > 0 AS failing
   FROM hooks WHERE hooks.id = ANY($1::text[])`,
)

/** Hooks that do not exist are left out. */
export const targetsOf = (query: Query, hookIds: readonly string[]): Promise<SealedTarget[]> =>
  query<SealedTarget>(targets, [hookIds])

const testTargets = statement(
  'targets-of-tests',
  `SELECT delivery_id AS "deliveryId", url, sealed_headers AS "sealedHeaders" FROM test_targets WHERE delivery_id = $1`,
)

/** Where a test-send goes, when that is not where its hook points. */
export const testTargetOf = async (
  query: Query,
  deliveryId: number,
): Promise<{ url: string; sealedHeaders: Buffer | null } | undefined> =>
  (await query<{ url: string; sealedHeaders: Buffer | null }>(testTargets, [deliveryId]))[0]

// Byte 1 to 4 of a sealed value are the id of the key it is under (envelope.ts).
const samples = statement(
  'targets-sealed-samples',
  `SELECT DISTINCT ON (substring(sealed FROM 2 FOR 4)) hook_id AS "hookId", sealed,
     count(*) OVER (PARTITION BY substring(sealed FROM 2 FOR 4)) AS count
   FROM hook_signing_keys WHERE expires_at IS NULL OR expires_at > now()`,
)

/** One live signing key for each key-encryption key, and how many there are like it. */
export const sealedSamples = (query: Query): Promise<{ hookId: string; sealed: Buffer; count: number }[]> =>
  query(samples, [])
