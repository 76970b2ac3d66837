import type { Knex } from 'knex'
import { type Query, queryOf, statement, type Transaction } from '../../../platform/database.ts'
import { newId } from '../../../platform/ids.ts'
import type { LogRow } from '../../directory/logs/log.ts'
import type { Page } from '../route.ts'

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

/** The `payload` column: the entry itself with what is particular to it. */
export const logPayload = ({ key, result, applicationId, userId, payload }: AuditEntry): object => ({
  key,
  result,
  applicationId,
  userId,
  ...payload,
})

/** Writes the row in the caller's transaction, so that it stands exactly when the change stands. */
export const insertLog = async (transaction: Transaction, entry: AuditEntry): Promise<void> => {
  await queryOf(transaction)(insert, [
    newId(),
    entry.key,
    entry.result,
    entry.applicationId ?? null,
    entry.userId ?? null,
    JSON.stringify(logPayload(entry)),
  ])
}

const insertMany = statement(
  'logs-insert',
  `INSERT INTO logs (id, key, result, application_id, user_id, payload, created_at)
   SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::jsonb[], $7::timestamptz[])`,
)

/** Writes rows of what happened a moment ago, in one statement. */
export const insertLogs = async (query: Query, rows: readonly { entry: AuditEntry; at: Date }[]): Promise<void> => {
  await query(insertMany, [
    rows.map(() => newId()),
    rows.map(({ entry }) => entry.key),
    rows.map(({ entry }) => entry.result),
    rows.map(({ entry }) => entry.applicationId ?? null),
    rows.map(({ entry }) => entry.userId ?? null),
    rows.map(({ entry }) => JSON.stringify(logPayload(entry))),
    rows.map(({ at }) => at),
  ])
}

export interface LogFilter {
  userId?: string | undefined
  applicationId?: string | undefined
  logKey?: string | undefined
  start_time?: Date | undefined
  end_time?: Date | undefined
  enableCap: boolean
}

/** How far a capped list is counted. */
const countCap = 10_000

export const findLog = (knex: Knex, id: string): Promise<LogRow | undefined> =>
  knex<LogRow>('logs').where({ id }).first()

/** Newest first. `isCapped` says that there are more than `total`. */
export const listLogs = async (
  knex: Knex,
  { userId, applicationId, logKey, start_time, end_time, enableCap }: LogFilter,
  page: Page,
): Promise<{ rows: LogRow[]; total: number; isCapped: boolean }> => {
  const query = knex('logs')
  if (userId !== undefined) query.where({ user_id: userId })
  if (applicationId !== undefined) query.where({ application_id: applicationId })
  if (logKey !== undefined) query.where({ key: logKey })
  if (start_time !== undefined) query.where('created_at', '>=', start_time)
  if (end_time !== undefined) query.where('created_at', '<=', end_time)
  const counted = query.clone().select('id')
  if (enableCap) counted.limit(countCap + 1)
  const [rows, count] = await Promise.all([
    query
      .clone()
      .select('id', 'key', 'payload', 'created_at')
      .orderBy([{ column: 'created_at', order: 'desc' }, 'id'])
      .limit(page.limit)
      .offset(page.offset),
    knex.from(counted.as('counted')).count({ total: '*' }).first(),
  ])
  const total = Number(count?.['total'] ?? 0)
  const isCapped = enableCap && total > countCap
  return { rows, total: isCapped ? countCap : total, isCapped }
}
