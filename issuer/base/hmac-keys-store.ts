import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { type Database, statement } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import { onlyRow } from './only-row.ts'

/** What HMACs are for. Each has a key of its own: random, made at the first start, sealed in the database. */
const purposes = [
  'csrf',
  'sign-in-failures',
  'backup-codes',
  'plausible-credentials',
  'message-limits',
  'verification-codes',
  'user-codes',
  'captcha',
  'dpop-nonces',
] as const
export type HmacPurpose = (typeof purposes)[number]

export type Hmac = (purpose: HmacPurpose, ...parts: readonly string[]) => Buffer

export const hmacKeyContext = (purpose: string) => `hmac-key:${purpose}`

// Whoever comes second reads what the first has stored.
const ensure = statement(
  'hmac-key-ensure',
  `INSERT INTO hmac_keys (purpose, sealed) VALUES ($1, $2)
   ON CONFLICT (purpose) DO UPDATE SET purpose = excluded.purpose RETURNING sealed`,
)

/** HMAC-SHA-256 of the parts. They are told apart, so that `ab`, `c` is not `a`, `bc`. */
export const createHmacs = async (database: Pick<Database, 'query'>, envelope: Envelope): Promise<Hmac> => {
  // An HMAC under plain bytes takes three times as long.
  const keys = new Map<HmacPurpose, KeyObject>()
  for (const purpose of purposes) {
    const context = hmacKeyContext(purpose)
    const rows = await database.query<{ sealed: Buffer }>(ensure, [purpose, envelope.seal(randomBytes(32), context)])
    keys.set(purpose, createSecretKey(envelope.open(onlyRow(rows).sealed, context)))
  }
  return (purpose, ...parts) => createHmac('sha256', keys.get(purpose)!).update(JSON.stringify(parts)).digest()
}
