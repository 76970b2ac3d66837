import type { Knex } from 'knex'
import { consoleClientId } from '../../base/console-roles.ts'
import { countCap, type Listed, listed, type Page } from '../../base/lists/list-store.ts'
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

export const findLog = (knex: Knex, id: string): Promise<LogRow | undefined> =>
  knex<LogRow>('logs').where({ id }).first()

const newestFirst = [
  { column: 'logs.created_at', order: 'desc' },
  { column: 'logs.id', order: 'asc' },
] as const

export const listLogs = (
  knex: Knex,
  { userId, applicationId, personId, sessionId, logKey, result, start_time, end_time, enableCap }: LogFilter,
  page: Page,
): Promise<Listed<LogRow>> => {
  const query = knex('logs').select('id', 'key', 'payload', 'created_at')
  if (userId !== undefined) query.where({ user_id: userId })
  if (applicationId !== undefined) query.where({ application_id: applicationId })
  if (personId !== undefined)
    query.where({ application_id: consoleClientId }).whereRaw(`payload->'person'->>'userId' = ?`, [personId])
  if (sessionId !== undefined) query.where({ session_id: sessionId })
  if (logKey !== undefined) query.where({ key: logKey })
  if (result !== undefined) query.where({ result })
  if (start_time !== undefined) query.where('created_at', '>=', start_time)
  if (end_time !== undefined) query.where('created_at', '<=', end_time)
  return listed(query, page, { order: newestFirst, cap: enableCap ? countCap : undefined })
}
