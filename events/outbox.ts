import { queryOf, statement, type Transaction } from '../platform/database/database.ts'
import { uuidv7 } from '../platform/ids.ts'
import type { EventContent } from './catalogue.ts'

/**
 * What an event tells of the HTTP request that caused it; built by the router. `path` and `matchedRoute` are below
 * `/api`.
 */
export interface EventRequest {
  ip: string
  userAgent: string | undefined
  method: string
  path: string
  matchedRoute: string
  params: Record<string, string>
  /** The status of the answer. */
  status: number
  /** Ties the events of one request together, a UUID. Default: one is made. */
  correlationId?: string
  /** The session because of which somebody else made it (`Surrogate-Session`). */
  sid?: string | undefined
}

/** An event of `catalogue.ts`, with the request that caused it. */
export type NewEvent = EventContent & { request: EventRequest }

/** The format of payloads, told in each as `apiVersion`. Members may be added within a version. */
export const apiVersion = '1'

const insert = statement(
  'outbox-insert',
  `WITH entity AS (
     INSERT INTO entity_versions AS known (kind, id, version) VALUES ($1, $2, 1)
     ON CONFLICT (kind, id) DO UPDATE SET version = known.version + 1
     RETURNING version),
   event AS (
     INSERT INTO outbox (id, entity_kind, entity_id, version, type, organization_id, correlation_id, payload)
     SELECT $3::uuid, $1, $2, entity.version, $4, $5, $6::uuid, convert_to($7::text || entity.version || $8::text, 'UTF8')
     FROM entity
     RETURNING seq, version),
   pending AS (INSERT INTO outbox_pending (seq) SELECT seq FROM event)
   SELECT version FROM event`,
)

/**
 * Records that something happened, in the transaction that made it happen: both stand or neither does. Takes the next
 * version of the entity (gap-free; the row stays locked until commit) and stores the bytes that receivers will get. One
 * round trip. Wake the publisher after the commit. Throws TypeError for a type that is not in the catalogue or belongs
 * to another kind of entity.
 */
export const recordEvent = async (
  transaction: Transaction,
  event: NewEvent,
): Promise<{ id: string; version: number }> => {
  const { type, entity, organizationId } = event
  const id = uuidv7()
  const { correlationId = uuidv7() } = event.request
  // Only the database knows the version, which stands between the two.
  const before = `{"id":"${id}","event":${JSON.stringify(type)},"version":`
  const after = `,${JSON.stringify(restOfPayload(event, correlationId)).slice(1)}`
  const values = [entity.kind, entity.id, id, type, organizationId ?? null, correlationId, before, after]
  const [row] = await queryOf(transaction)<{ version: number | string }>(insert, values)
  return { id, version: Number(row!.version) }
}

/** What `firstEvents` reads of a request. */
export const firstEventColumns = {
  event_id: 'uuid',
  event_type: 'text',
  event_correlation_id: 'uuid',
  event_organization_id: 'text',
  entity_kind: 'text',
  entity_id: 'text',
  // Stored as it stands in the request, byte for byte.
  event_payload: 'json',
} as const

/**
 * `recordEvent` as part of a bigger statement, for paths where a round trip counts, and for entities that begin with
 * it: table expressions to stand after `WITH`, which record the event of each row of `from` as the first of its entity.
 */
export const firstEvents = (from: string): string => `
   entity AS (
     INSERT INTO entity_versions (kind, id, version) SELECT entity_kind, entity_id, 1 FROM ${from}),
   event AS (
     INSERT INTO outbox (id, entity_kind, entity_id, version, type, organization_id, correlation_id, payload)
     SELECT event_id, entity_kind, entity_id, 1, event_type, event_organization_id, event_correlation_id,
       convert_to(event_payload::text, 'UTF8')
     FROM ${from}
     RETURNING seq),
   pending AS (INSERT INTO outbox_pending (seq) SELECT seq FROM event)`

/** The values of `firstEventColumns`. Throws TypeError as `recordEvent`. */
export const firstEvent = (event: NewEvent): Record<keyof typeof firstEventColumns, unknown> => {
  const { type, entity } = event
  const id = uuidv7()
  const { correlationId = uuidv7() } = event.request
  return {
    event_id: id,
    event_type: type,
    event_correlation_id: correlationId,
    event_organization_id: event.organizationId,
    entity_kind: entity.kind,
    entity_id: entity.id,
    event_payload: { id, event: type, version: 1, ...restOfPayload(event, correlationId) },
  }
}

/** The payload behind `id`, `event` and `version`. */
const restOfPayload = (event: NewEvent, correlationId: string): Record<string, unknown> => {
  const { data, extras, organizationId, request } = event
  const rest = {
    apiVersion,
    correlationId,
    createdAt: new Date().toISOString(),
    ...(organizationId === undefined ? {} : { organizationId }),
    ...(request.sid === undefined ? {} : { sid: request.sid }),
    userAgent: request.userAgent,
    ip: request.ip,
    path: request.path,
    method: request.method,
    status: request.status,
    params: request.params,
    matchedRoute: request.matchedRoute,
    data: data ?? null,
  }
  if (extras === undefined) return rest
  const reserved = new Set(['hookId', 'id', 'event', 'version', 'sid', ...Object.keys(rest)])
  return { ...rest, ...Object.fromEntries(Object.entries(extras).filter(([name]) => !reserved.has(name))) }
}
