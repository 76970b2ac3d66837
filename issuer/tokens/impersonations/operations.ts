import { z } from 'zod'
import type { EventContent } from '../../../events/catalogue.ts'
import type { Database } from '../../../platform/database/database.ts'
import { unknownId } from '../../base/errors/not-found.ts'
import type { Page } from '../../base/lists/list-store.ts'
import { booleanText } from '../../base/lists/search.ts'
import type { Mutate, Mutation } from '../../base/mutate.ts'
import type { OperationContext } from '../../base/route.ts'
import { id } from '../../base/schemas.ts'
import { withNames } from '../names.ts'
import { type NewRevocation, revoke } from '../revocations/revocation-store.ts'
import {
  endSession,
  everySession,
  findSession,
  listSessions,
  type SessionFilter,
  type SessionRow,
} from './impersonation-store.ts'
import { type SessionRecord, toSession } from './session-record.ts'
import { readTimeline, type Timeline } from './timeline.ts'

export const sessionParams = z.object({ id })
/** Milliseconds since the epoch, within what a timestamp can be. */
const moment = z
  .string()
  .regex(/^\d{1,15}$/, 'must be milliseconds since the epoch')
  .transform((text) => new Date(Number(text)))

export const timelineQuery = z.object({
  limit: z
    .string()
    .regex(/^\d{1,4}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.number().min(1).max(1_000))
    .describe('Changes that are told, the first ones. Default 1 000.')
    .optional(),
})

export const sessionQuery = z.object({
  userId: id.optional(),
  actorId: id.optional(),
  clientId: id.optional(),
  creatorId: id.optional(),
  ticket: z.string().min(1).max(256).optional(),
  reason: z.string().min(1).max(1024).optional(),
  /** `from <= startedAt < to` */
  from: moment.optional(),
  to: moment.optional(),
  active: booleanText.optional(),
})

/** `Impersonation.Ended`, without the request that caused it. */
export const sessionEnded = (row: SessionRow): EventContent => ({
  type: 'Impersonation.Ended',
  entity: { kind: 'impersonation', id: row.id },
  data: toSession(row),
})

export const sessionRevocation = ({ id: value, expiresAt }: SessionRow): NewRevocation => ({
  kind: 'sid',
  value,
  expiresAt,
})

/**
 * What follows from sessions that were ended in this transaction: their events, then their revocations with `others`.
 */
export const recordEnded = async (
  { trx, record }: Mutation,
  ended: readonly SessionRow[],
  others: readonly NewRevocation[] = [],
): Promise<void> => {
  for (const session of ended) await record(sessionEnded(session))
  await revoke(trx, [...ended.map(sessionRevocation), ...others])
}

const peopleOf = ({ subjectId, actorId, clientId }: SessionRecord) => [subjectId, actorId, clientId]

export interface SessionDependencies {
  database: Pick<Database, 'query' | 'knex'>
  mutate: Mutate
}

/** Reading impersonation sessions, and ending them before their token expires. */
export const sessionOperations = ({ database, mutate }: SessionDependencies) => ({
  async list({ includeNames, ...filter }: SessionFilter & { includeNames?: boolean | undefined }, page: Page) {
    const { rows, total } = await listSessions(database.knex, filter, page)
    const sessions = rows.map(toSession)
    return { body: includeNames ? await withNames(database.query, sessions, peopleOf) : sessions, total }
  },

  async *every(filter: SessionFilter): AsyncGenerator<SessionRecord> {
    for await (const row of everySession(database.knex, filter)) yield toSession(row)
  },

  async get(sessionId: string): Promise<SessionRecord> {
    const row = await findSession(database.query, sessionId)
    if (!row) throw unknownId(sessionId)
    return toSession(row)
  },

  timeline: (sessionId: string, limit = 1_000): Promise<Timeline> =>
    readTimeline(database.query, sessionId, limit, new Date()),

  /** What has ended stays as it ended: no second event. */
  end: (sessionId: string, context: OperationContext): Promise<void> =>
    mutate(context, async (mutation) => {
      const ended = await endSession(mutation.trx, sessionId, context.caller.subject)
      if (ended.length > 0) return recordEnded(mutation, ended)
      if (!(await findSession(mutation.trx, sessionId))) throw unknownId(sessionId)
    }),
})
