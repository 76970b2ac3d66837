import { z } from 'zod'
import { deliveriesOfEvents, type EventDelivery } from '../../../deliveries/event-delivery-store.ts'
import { impersonation } from '../../../events/records.ts'
import type { Query } from '../../../platform/database/database.ts'
import { unknownId } from '../../base/errors/not-found.ts'
import { id, timestamp } from '../../base/schemas.ts'
import { names } from '../names.ts'
import { findNames } from '../names-store.ts'
import { type Minted, minted, policyAnswer } from './history.ts'
import { findSession, type SessionRow } from './impersonation-store.ts'
import { toSession } from './session-record.ts'
import {
  type AskedFirst,
  findAskedFirst,
  findChanges,
  findEvents,
  findHistory,
  findOpenedThrough,
  type NamedChange,
  type NamedEvent,
  type OpenedThrough,
  type SessionHistory,
} from './timeline-store.ts'

const at = timestamp

const attempt = z.object({
  at,
  status: z.number().nullable(),
  succeeded: z.boolean(),
  durationMs: z.number(),
  error: z.string().nullable(),
})

const delivery = z.object({
  id: z.string(),
  hookId: z.string(),
  hookName: z.string(),
  state: z.enum(['pending', 'sending', 'succeeded', 'retrying', 'held', 'dead', 'cancelled']),
  attempts: z.number(),
  nextAttemptAt: at.nullable().describe('Null once nothing more is tried.'),
  finishedAt: at.nullable(),
  lastStatus: z.number().nullable(),
  lastError: z.string().nullable(),
  lastAttempts: z.array(attempt).describe('The last ten, oldest first.'),
})

const kept = 'Null: an issuer of an older version opened the session.'

/** What happened, by `kind`. */
export const timelineEntry = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('requested'), at, requestId: id }),
  z.object({ kind: z.literal('approved'), at, requestId: id, readOnly: z.boolean(), maxTtl: z.number().nullable() }),
  z.object({ kind: z.literal('minted'), at, ...minted.omit({ at: true }).shape, clientId: z.string() }),
  z.object({
    kind: z.literal('exchanged'),
    at,
    clientId: z.string(),
    policy: policyAnswer.nullable().describe(kept),
    /** `id`: the `jti` of a JWT. */
    token: z.object({ id: z.string(), format: z.enum(['jwt', 'opaque']), expiresAt: at }),
    logId: z.string().nullable(),
    ip: z.string().nullable(),
    userAgent: z.string().nullable(),
  }),
  z.object({ kind: z.literal('opened'), at, sessionId: z.string(), subjectId: z.string(), clientId: z.string() }),
  z.object({
    kind: z.literal('changed'),
    at,
    logId: z.string(),
    operation: z.string(),
    result: z.enum(['Success', 'Error']),
    clientId: z.string().nullable(),
    userId: z.string().nullable(),
    method: z.string().nullable(),
    path: z.string().nullable(),
    fields: z.array(z.string()).describe('Names of the members that were sent.'),
  }),
  z.object({
    kind: z.literal('event'),
    at,
    eventId: z.string(),
    type: z.string(),
    entity: z.object({ kind: z.string(), id: z.string() }),
    version: z.number(),
    deliveries: z.array(delivery),
  }),
  z.object({ kind: z.literal('ended'), at, by: z.string().nullable() }),
  z.object({ kind: z.literal('expired'), at }),
])
export type TimelineEntry = z.output<typeof timelineEntry>

export const timeline = z.object({
  session: impersonation,
  names,
  entries: z.array(timelineEntry).describe('Oldest first.'),
  more: z.boolean().describe('There were more changes than asked for: the first ones are told.'),
})
export type Timeline = z.output<typeof timeline>

/**
 * All that the issuer knows of a session, in the order of time, with the first `limit` changes that name it. Throws
 * 404.
 */
export const readTimeline = async (query: Query, sessionId: string, limit: number, now: Date): Promise<Timeline> => {
  const [row, history] = await Promise.all([findSession(query, sessionId), findHistory(query, sessionId)])
  if (!row || !history) throw unknownId(sessionId)
  const { id, approvalId } = row
  const [askedFirst, through, changes, events] = await Promise.all([
    approvalId === null ? undefined : findAskedFirst(query, approvalId),
    findOpenedThrough(query, row),
    findChanges(query, id, limit + 1),
    findEvents(query, row, limit),
  ])
  const deliveries = Map.groupBy(
    events.length === 0
      ? []
      : await deliveriesOfEvents(
          query,
          events.map((event) => event.id),
        ),
    ({ eventId }) => eventId,
  )
  const entries = [
    ...(askedFirst && approvalId !== null ? askedEntries(approvalId, askedFirst) : []),
    ...(history.minted ? [mintedEntry(row, history.minted)] : []),
    exchangedEntry(row, history),
    ...through.map(openedEntry),
    ...changes.slice(0, limit).map(changedEntry),
    ...endEntries(row, now),
    // Behind what they tell, which has the same time.
    ...events.map((event) => eventEntry(event, deliveries.get(event.id) ?? [])),
  ].toSorted((one, other) => one.at - other.at)
  const found = await findNames(query, [...new Set(entries.flatMap(idsOf).concat(idsOfSession(row)))])
  return { session: toSession(row), names: found, entries, more: changes.length > limit }
}

const askedEntries = (requestId: string, { createdAt, decidedAt, readOnly, maxTtl }: AskedFirst): TimelineEntry[] => [
  { kind: 'requested', at: createdAt.getTime(), requestId },
  ...(decidedAt ? [{ kind: 'approved' as const, at: decidedAt.getTime(), requestId, readOnly, maxTtl }] : []),
]

const mintedEntry = ({ creatorId }: SessionRow, known: Minted): TimelineEntry => ({
  kind: 'minted',
  ...known,
  clientId: creatorId,
})

const exchangedEntry = (
  { startedAt, expiresAt, clientId, resource }: SessionRow,
  { policy, tokenId, exchange }: SessionHistory,
): TimelineEntry => ({
  kind: 'exchanged',
  at: startedAt.getTime(),
  clientId,
  policy,
  token: { id: tokenId, format: resource === null ? 'opaque' : 'jwt', expiresAt: expiresAt.getTime() },
  logId: exchange?.logId ?? null,
  ip: exchange?.ip ?? null,
  userAgent: exchange?.userAgent ?? null,
})

const openedEntry = ({ id: sessionId, startedAt, ...rest }: OpenedThrough): TimelineEntry => ({
  kind: 'opened',
  at: startedAt.getTime(),
  sessionId,
  ...rest,
})

const changedEntry = ({ id: logId, key, createdAt, ...rest }: NamedChange): TimelineEntry => ({
  kind: 'changed',
  at: createdAt.getTime(),
  logId,
  operation: key.slice(key.indexOf('.') + 1),
  ...rest,
})

const eventEntry = (
  { id: eventId, createdAt, type, entity, version }: NamedEvent,
  deliveries: readonly EventDelivery[],
): TimelineEntry => ({
  kind: 'event',
  at: createdAt.getTime(),
  ...{ eventId, type, entity, version },
  deliveries: deliveries.map(toDelivery),
})

const toDelivery = (row: EventDelivery): z.output<typeof delivery> => {
  const { id, hookId, hookName, state, attempts, lastStatus, lastError } = row
  return {
    ...{ id, hookId, hookName, state, attempts, lastStatus, lastError },
    nextAttemptAt: row.finishedAt ? null : row.nextAttemptAt.getTime(),
    finishedAt: row.finishedAt?.getTime() ?? null,
    lastAttempts: row.lastAttempts.map((one) => ({ ...one, at: Date.parse(one.at) })),
  }
}

const endEntries = ({ endedAt, endedBy, expiresAt }: SessionRow, now: Date): TimelineEntry[] => {
  if (endedAt) return [{ kind: 'ended', at: endedAt.getTime(), by: endedBy }]
  return expiresAt <= now ? [{ kind: 'expired', at: expiresAt.getTime() }] : []
}

const idsOfSession = ({ subjectId, actorId, clientId, creatorId, endedBy }: SessionRow): string[] =>
  [subjectId, actorId, clientId, creatorId, endedBy].filter((one) => one !== null)

const idsOf = (entry: TimelineEntry): string[] => {
  if (entry.kind === 'minted') return entry.personId === undefined ? [] : [entry.personId]
  if (entry.kind === 'opened') return [entry.subjectId, entry.clientId]
  if (entry.kind === 'changed') return [entry.clientId, entry.userId].filter((one) => one !== null)
  return []
}
