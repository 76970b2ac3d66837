import { type Query, statement } from '../../../platform/database/database.ts'

/** `parameters` are encrypted: the database has what opens them only as a digest. */
const insert = statement(
  'pushed-request-insert',
  `INSERT INTO pushed_requests (digest, kind, client_id, parameters, expires_at)
   VALUES ($1, $2, $3, to_jsonb($4::text), now() + $5::integer * interval '1 second')`,
)

export const insertPushedRequest = async (
  query: Query,
  row: { digest: Buffer; kind: 'pushed' | 'posted'; clientId: string | null; parameters: string; ttl: number },
): Promise<void> => {
  await query(insert, [row.digest, row.kind, row.clientId, row.parameters, row.ttl])
}

// From its first use on it belongs to that browser, until an interaction that came of it has led back to the client.
const usePushed = statement(
  'pushed-request-use',
  `UPDATE pushed_requests SET browser = $3, used_at = coalesce(used_at, now()),
     expires_at = CASE WHEN used_at IS NULL THEN now() + $4::integer * interval '1 second' ELSE expires_at END
   WHERE digest = $1 AND kind = 'pushed' AND client_id = $2 AND expires_at > now()
     AND (browser IS NULL OR browser = $3)
     AND NOT EXISTS (SELECT FROM interactions i
       WHERE i.browser = $3 AND i.finished_at IS NOT NULL AND i.request->>'pushedRequest' = encode($1, 'hex'))
   RETURNING parameters #>> '{}' AS parameters`,
)

/** The parameters, for the client that pushed them and the first browser that came with them. `ttl` from then on. */
export const usePushedRequest = async (
  query: Query,
  { digest, clientId, browser, ttl }: { digest: Buffer; clientId: string; browser: Buffer; ttl: number },
): Promise<string | undefined> =>
  (await query<{ parameters: string }>(usePushed, [digest, clientId, browser, ttl]))[0]?.parameters

const takePosted = statement(
  'posted-request-take',
  `DELETE FROM pushed_requests WHERE digest = $1 AND kind = 'posted' AND expires_at > now()
   RETURNING parameters #>> '{}' AS parameters`,
)

/** The parameters; nobody gets them a second time. */
export const takePostedRequest = async (query: Query, digest: Buffer): Promise<string | undefined> =>
  (await query<{ parameters: string }>(takePosted, [digest]))[0]?.parameters

const remove = statement('pushed-request-delete', 'DELETE FROM pushed_requests WHERE digest = $1')

export const deletePushedRequest = async (query: Query, digest: Buffer): Promise<void> => {
  await query(remove, [digest])
}
