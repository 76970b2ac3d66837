import { type Query, queryOf, statement, type Transaction } from '../../../platform/database/database.ts'
import { newId } from '../../../platform/ids.ts'
import { sha256 } from '../../../platform/secret.ts'

/**
 * One row of the audit trail: who did what, to whom, through which client, and what came of it. Never a secret or a
 * token.
 */
export interface AuditEntry {
  /** `ExchangeTokenBy.TokenExchange`, `Management.createUser`, … */
  key: string
  result: 'Success' | 'Error'
  applicationId?: string | undefined
  userId?: string | undefined
  /** `ip`, `userAgent`, `params`, `error`, … */
  payload: Record<string, unknown>
  /** The session because of which somebody else did it; it can be looked for. */
  sessionId?: string | undefined
  /** What it tells, where it may be told again: of those with the same, the first stays. */
  once?: string | undefined
}

const idLength = 21
const idOf = ({ once }: AuditEntry): string =>
  once === undefined ? newId(idLength) : sha256(once).toString('hex').slice(0, idLength)

const insert = statement(
  'log-insert',
  `INSERT INTO logs (id, key, result, application_id, user_id, payload, session_id) VALUES ($1, $2, $3, $4, $5, $6, $7)
   ON CONFLICT (id) DO NOTHING`,
)

/** The `payload` column: the entry itself with what is particular to it. */
export const logPayload = ({ key, result, applicationId, userId, sessionId, payload }: AuditEntry): object => ({
  key,
  result,
  applicationId,
  userId,
  sessionId,
  ...payload,
})

/** Writes the row in the caller's transaction, so that it stands exactly when the change stands. */
export const insertLog = async (transaction: Transaction, entry: AuditEntry): Promise<void> => {
  await queryOf(transaction)(insert, [
    idOf(entry),
    entry.key,
    entry.result,
    entry.applicationId ?? null,
    entry.userId ?? null,
    JSON.stringify(logPayload(entry)),
    entry.sessionId ?? null,
  ])
}

const insertMany = statement(
  'logs-insert',
  `INSERT INTO logs (id, key, result, application_id, user_id, payload, created_at)
   SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::jsonb[], $7::timestamptz[])
   ON CONFLICT (id) DO NOTHING`,
)

/** Writes rows of what happened a moment ago, in one statement. */
export const insertLogs = async (query: Query, rows: readonly { entry: AuditEntry; at: Date }[]): Promise<void> => {
  await query(insertMany, [
    rows.map(({ entry }) => idOf(entry)),
    rows.map(({ entry }) => entry.key),
    rows.map(({ entry }) => entry.result),
    rows.map(({ entry }) => entry.applicationId ?? null),
    rows.map(({ entry }) => entry.userId ?? null),
    rows.map(({ entry }) => JSON.stringify(logPayload(entry))),
    rows.map(({ at }) => at),
  ])
}
