import type { Knex } from 'knex'
import { consoleClientId } from '../../base/console-roles.ts'
import type { Page } from '../../base/lists/list-store.ts'
import type { LogRow } from './log.ts'

export interface LogFilter {
  userId?: string | undefined
  applicationId?: string | undefined
  /** Who did it, in the console. */
  personId?: string | undefined
  sessionId?: string | undefined
  logKey?: string | undefined
  result?: 'Success' | 'Error' | undefined
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
  { userId, applicationId, personId, sessionId, logKey, result, start_time, end_time, enableCap }: LogFilter,
  page: Page,
): Promise<{ rows: LogRow[]; total: number; isCapped: boolean }> => {
  const query = knex('logs')
  if (userId !== undefined) query.where({ user_id: userId })
  if (applicationId !== undefined) query.where({ application_id: applicationId })
  if (personId !== undefined)
    query.where({ application_id: consoleClientId }).whereRaw(`payload->'person'->>'userId' = ?`, [personId])
  if (sessionId !== undefined) query.where({ session_id: sessionId })
  if (logKey !== undefined) query.where({ key: logKey })
  if (result !== undefined) query.where({ result })
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
