import { hookSecrets } from '../../../deliveries/hook-secrets.ts'
import { type Query, statement } from '../../../platform/database/database.ts'
import type { Envelope } from '../../../platform/envelope.ts'
import { newId } from '../../../platform/ids.ts'
import { onlyRow } from '../../base/only-row.ts'
import type { Hook } from './hook.ts'

export interface HookColumns {
  name: string
  events: string[]
  event: string | null
  url: string
  headers: Record<string, string>
  retries: number | null
  rateLimit: number | null
  organizationIds: string[] | null
  enabled: boolean
}

const columns = `hooks.id, name, events, event, url, sealed_headers AS "sealedHeaders", retries, rate_limit AS "rateLimit",
  organization_ids AS "organizationIds", enabled, disabled_reason AS "disabledReason", hooks.created_at AS "createdAt", current.sealed AS "sealedKey"`
const withKey = `FROM hooks JOIN hook_signing_keys AS current ON current.hook_id = hooks.id AND current.expires_at IS NULL`

const one = statement('hook-find', `SELECT ${columns} ${withKey} WHERE hooks.id = $1`)
const oneLocked = statement('hook-lock', `SELECT ${columns} ${withKey} WHERE hooks.id = $1 FOR UPDATE OF hooks`)
const page = statement(
  'hook-list',
  `SELECT ${columns} ${withKey} ORDER BY hooks.created_at DESC, hooks.id LIMIT $1 OFFSET $2`,
)
const count = statement('hook-count', `SELECT count(*) AS total FROM hooks`)
const insert = statement(
  'hook-insert',
  `INSERT INTO hooks (id, name, events, url, sealed_headers, retries, rate_limit, organization_ids, enabled, event)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
)
// Whoever changes or enables a hook wants it tried again: a trigger makes what relays noted of its failures begin anew.
const update = statement(
  'hook-update',
  `UPDATE hooks SET name = $2, events = $3, url = $4, sealed_headers = $5, retries = $6, rate_limit = $7,
     organization_ids = $8, enabled = $9, event = $10,
     disabled_at = CASE WHEN $9 THEN NULL ELSE disabled_at END,
     disabled_reason = CASE WHEN $9 THEN NULL ELSE disabled_reason END
   WHERE id = $1`,
)
const remove = statement('hook-delete', `DELETE FROM hooks WHERE id = $1 RETURNING id`)
const insertKey = statement(
  'hook-key-insert',
  `INSERT INTO hook_signing_keys (id, hook_id, sealed) VALUES ($1, $2, $3)`,
)
const endKey = statement(
  'hook-key-end',
  `UPDATE hook_signing_keys SET expires_at = now() + $2 * interval '1 second' WHERE hook_id = $1 AND expires_at IS NULL`,
)
// The ones that end last are the newest.
const removeKeys = statement(
  'hook-keys-remove',
  `DELETE FROM hook_signing_keys WHERE hook_id = $1 AND expires_at IS NOT NULL AND id NOT IN (
     SELECT id FROM hook_signing_keys WHERE hook_id = $1 AND expires_at > now() ORDER BY created_at DESC, id LIMIT $2)`,
)

type Row = Omit<Hook, 'headers' | 'signingKey'> & { sealedHeaders: Buffer | null; sealedKey: Buffer }

export const createHookStore = (envelope: Envelope) => {
  const { openHeaders, openSigningKey, sealHeaders, sealSigningKey } = hookSecrets(envelope)
  const opened = ({ sealedHeaders, sealedKey, ...row }: Row): Hook => ({
    ...row,
    headers: openHeaders(row.id, sealedHeaders),
    signingKey: openSigningKey(row.id, sealedKey),
  })
  const found = async (rows: Promise<Row[]>) => {
    const [row] = await rows
    return row && opened(row)
  }
  const values = (id: string, hook: HookColumns) => [
    id,
    hook.name,
    hook.events,
    hook.url,
    sealHeaders(id, hook.headers),
    hook.retries,
    hook.rateLimit,
    hook.organizationIds,
    hook.enabled,
    hook.event,
  ]

  return {
    find: (query: Query, id: string) => found(query<Row>(one, [id])),
    /** No other change of this hook until the transaction ends. */
    lock: (query: Query, id: string) => found(query<Row>(oneLocked, [id])),
    async list(query: Query, slice: { limit: number; offset: number } | undefined) {
      const [rows, counted] = await Promise.all([
        query<Row>(page, [slice?.limit ?? null, slice?.offset ?? 0]),
        query<{ total: number }>(count, []),
      ])
      return { hooks: rows.map(opened), total: onlyRow(counted).total }
    },
    async insert(query: Query, hook: HookColumns, signingKey: string): Promise<string> {
      const id = newId()
      await query(insert, values(id, hook))
      await query(insertKey, [newId(), id, sealSigningKey(id, signingKey)])
      return id
    },
    update: (query: Query, id: string, hook: HookColumns) => query(update, values(id, hook)),
    /** False when there was none. */
    remove: async (query: Query, id: string): Promise<boolean> => (await query(remove, [id])).length > 0,
    /** `keep`: how many old keys go on signing until their end, the one that is replaced included. */
    async replaceKey(query: Query, id: string, signingKey: string, options: { overlapSeconds: number; keep: number }) {
      await query(endKey, [id, options.overlapSeconds])
      await query(removeKeys, [id, options.keep])
      await query(insertKey, [newId(), id, sealSigningKey(id, signingKey)])
    },
  }
}
