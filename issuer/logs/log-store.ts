import { queryOf, statement, type Transaction } from '../../platform/database.ts'
import { newId } from '../../platform/ids.ts'

/** One row of the audit trail: who did what, to whom, through which client, and what came of it. Never a secret or a token. */
export interface AuditEntry {
  /** `ExchangeTokenBy.TokenExchange`, `Management.createUser`, … */
  key: string
  result: 'Success' | 'Error'
  applicationId?: string | undefined
  userId?: string | undefined
  /** `ip`, `userAgent`, `params`, `error`, … */
  payload: Record<string, unknown>
}

const insert = statement(
  'log-insert',
  `INSERT INTO logs (id, key, result, application_id, user_id, payload) VALUES ($1, $2, $3, $4, $5, $6)`,
)

/** Writes the row in the caller's transaction, so that it stands exactly when the change stands. */
export const insertLog = async (transaction: Transaction, entry: AuditEntry): Promise<void> => {
  await queryOf(transaction)(insert, [
    newId(),
    entry.key,
    entry.result,
    entry.applicationId ?? null,
    entry.userId ?? null,
    JSON.stringify({
      key: entry.key,
      result: entry.result,
      applicationId: entry.applicationId,
      userId: entry.userId,
      ...entry.payload,
    }),
  ])
}
