import { type Query, statement } from '../../platform/database/database.ts'
import { onlyRow } from './only-row.ts'

/** What was answered under an idempotency key. `id` stands for client, route and key. */
export interface KeptAnswer {
  id: string
  status: number
  sealed: Buffer
}

/** What `sealed` is bound to. */
export const idempotencyContext = (id: string): string => `idempotency:${id}`

// Ends with the transaction, whatever becomes of the process. Two keys that meet in 32 bits at the same moment would
// only have one told to come again.
const lock = statement(
  'idempotency-lock',
  `SELECT pg_try_advisory_xact_lock(7305178, ('x' || left($1, 8))::bit(32)::int) AS mine`,
)

/** Whether nobody else is answering under this key; then nobody does until the transaction ends. */
export const claimKey = async (query: Query, id: string): Promise<boolean> =>
  onlyRow(await query<{ mine: boolean }>(lock, [id])).mine

const find = statement('idempotency-find', `SELECT id, status, sealed FROM idempotency_answers WHERE id = $1`)

export const findAnswer = async (query: Query, id: string): Promise<KeptAnswer | undefined> =>
  (await query<KeptAnswer>(find, [id]))[0]

const insert = statement(
  'idempotency-insert',
  `INSERT INTO idempotency_answers (id, status, sealed) VALUES ($1, $2, $3)`,
)

export const insertAnswer = async (query: Query, { id, status, sealed }: KeptAnswer): Promise<void> => {
  await query(insert, [id, status, sealed])
}
