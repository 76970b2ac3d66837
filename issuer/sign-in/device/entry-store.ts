import { type Query, statement } from '../../../platform/database/database.ts'
import { onlyRow } from '../../base/only-row.ts'

/** Wrong codes of one browser, and of everybody behind one address, in an hour (RFC 8628 §5.1). */
const mostOfBrowser = 5
const mostOfAddress = 20

const isOver = `f.since <= now() - interval '1 hour'`

// A browser that has had its share takes nothing from its neighbours at the address.
const count = statement(
  'device-entry-count',
  `WITH browser AS (
     INSERT INTO sign_in_failures AS f (key, count, since) VALUES ($1, 1, now())
     ON CONFLICT (key) DO UPDATE SET count = CASE WHEN ${isOver} THEN 1 ELSE least(f.count + 1, ${mostOfBrowser} + 1) END,
       since = CASE WHEN ${isOver} THEN now() ELSE f.since END, updated_at = now()
     RETURNING count),
   address AS (
     INSERT INTO sign_in_failures AS f (key, count, since) SELECT $2, 1, now() FROM browser WHERE count <= ${mostOfBrowser}
     ON CONFLICT (key) DO UPDATE SET count = CASE WHEN ${isOver} THEN 1 ELSE least(f.count + 1, ${mostOfAddress} + 1) END,
       since = CASE WHEN ${isOver} THEN now() ELSE f.since END, updated_at = now()
     RETURNING count)
   SELECT coalesce((SELECT count FROM address) <= ${mostOfAddress}, false) AS "isAllowed" FROM browser`,
)

export interface EntryKeys {
  browser: Buffer
  address: Buffer
}

/** Counts an entry, and commits that, before it is looked at. False: it must not be. */
export const countEntry = async (query: Query, { browser, address }: EntryKeys): Promise<boolean> =>
  onlyRow(await query<{ isAllowed: boolean }>(count, [browser, address])).isAllowed

const forgive = statement(
  'device-entry-forgive',
  `UPDATE sign_in_failures SET count = greatest(count - 1, 0)
   WHERE key = ANY (ARRAY(SELECT key FROM sign_in_failures WHERE key IN ($1, $2) ORDER BY key = $2 FOR UPDATE))`,
)

/** The entry was right: it is none of the wrong ones. */
export const forgiveEntry = async (query: Query, { browser, address }: EntryKeys): Promise<void> => {
  await query(forgive, [browser, address])
}
