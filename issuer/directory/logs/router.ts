import { z } from 'zod'
import type { ManagementDependencies } from '../../base/dependencies.ts'
import { requireFound } from '../../base/errors/not-found.ts'
import { booleanText } from '../../base/lists/search.ts'
import { type Route, route } from '../../base/route.ts'
import { id, timestampText } from '../../base/schemas.ts'
import { log, toLog } from './log.ts'
import { findLog, listLogs } from './log-store.ts'

export const logsRoutes = ({ database: { knex } }: ManagementDependencies): Route[] => [
  route({
    method: 'GET',
    path: '/logs',
    operationId: 'listLogs',
    summary: 'Lists the audit trail, newest first.',
    scope: 'read',
    query: z.object({
      userId: id.optional(),
      applicationId: id.optional(),
      personId: id.describe('What this person did in the console.').optional(),
      sessionId: id.describe('Changes that an API made because of this session (`Surrogate-Session`).').optional(),
      logKey: z.string().min(1).max(256).optional(),
      result: z.enum(['Success', 'Error']).optional(),
      start_time: timestampText.optional(),
      end_time: timestampText.optional(),
      /** Counts no further than 10 000 and says so in `Total-Number-Is-Capped`. */
      enableCap: booleanText.default(false),
    }),
    paged: 'always',
    status: 200,
    response: z.array(log),
    async handle({ query, page }) {
      const { rows, ...total } = await listLogs(knex, query, page)
      return { body: rows.map(toLog), ...total }
    },
  }),
  route({
    method: 'GET',
    path: '/logs/:id',
    operationId: 'getLog',
    summary: 'Reads a row of the audit trail.',
    scope: 'read',
    params: z.object({ id }),
    status: 200,
    response: log,
    problems: ['entity.not_exists_with_id'],
    async handle({ params: { id } }) {
      const row = requireFound(await findLog(knex, id), id)
      return { body: toLog(row) }
    },
  }),
]
