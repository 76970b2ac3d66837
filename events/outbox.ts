import { queryOf, statement, type Transaction } from '../platform/database.ts'
import { uuidv7 } from '../platform/ids.ts'
import { eventTypes } from './catalogue.ts'

/** What an event tells of the HTTP request that caused it; built by the router. `path` and `matchedRoute` are below `/api`. */
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
}

export type EntityKind =
  | 'user'
  | 'role'
  | 'scope'
  | 'organization'
  | 'organization-role'
  | 'organization-scope'
  | 'impersonation'
  | 'hook'

export interface NewEvent {
  /** A type of `catalogue.ts`. */
  type: string
  entity: { kind: EntityKind; id: string }
  organizationId?: string
  /** The answer of the Management API, null when there is none. */
  data: unknown
  /** Members beside `data`: `roleId`, `addedUserIds`, … They cannot replace the others. */
  extras?: Record<string, unknown>
  request: EventRequest
}

/** The format of payloads, told in each as `apiVersion`. Members may be added within a version. */
export const apiVersion = '1'

/**
 * `recordEvent` as part of a bigger statement, for paths where a round trip counts: table expressions to stand after `WITH`, which record
 * the event once for the one row of `from`, or not at all when it has none. Their parameters are `eventValues(event)`, from `$first` on.
 */
export const eventExpressions = (from: string, first: number): string => {
  const [kind, id, eventId, type, organizationId, correlationId, before, after] = [0, 1, 2, 3, 4, 5, 6, 7].map(
    (index) => `$${first + index}`,
  )
  return `
   entity AS (
     INSERT INTO entity_versions AS known (kind, id, version) SELECT ${kind}, ${id}, 1 FROM ${from}
     ON CONFLICT (kind, id) DO UPDATE SET version = known.version + 1
     RETURNING version),
   event AS (
     INSERT INTO outbox (id, entity_kind, entity_id, version, type, organization_id, correlation_id, payload)
     SELECT ${eventId}::uuid, ${kind}, ${id}, entity.version, ${type}, ${organizationId}, ${correlationId}::uuid,
       convert_to(${before}::text || entity.version || ${after}::text, 'UTF8')
     FROM entity
     RETURNING id, version)`
}

/** The values of `eventExpressions`. Throws TypeError for a type that is not in the catalogue or belongs to another kind of entity. */
export const eventValues = (event: NewEvent): [kind: string, id: string, eventId: string, ...unknown[]] => {
  const known = eventTypes.get(event.type)
  if (known === undefined) throw new TypeError(`Not an event type: ${event.type}`)
  if (known.entity !== event.entity.kind)
    throw new TypeError(`${event.type} is an event of a ${known.entity}, not of a ${event.entity.kind}.`)
  const id = uuidv7()
  const correlationId = event.request.correlationId ?? uuidv7()
  const { before, after } = payloadAround(event, id, correlationId)
  const { kind, id: entityId } = event.entity
  return [kind, entityId, id, event.type, event.organizationId ?? null, correlationId, before, after]
}

const insert = statement(
  'outbox-insert',
  `WITH once AS (SELECT), ${eventExpressions('once', 1)} SELECT version FROM event`,
)

/**
 * Records that something happened, in the transaction that made it happen: both stand or neither does. Takes the next version of the
 * entity (gap-free; the row stays locked until commit) and stores the bytes that receivers will get. One round trip. Wake the
 * publisher after the commit. Throws TypeError for a type that is not in the catalogue or belongs to another kind of entity.
 */
export const recordEvent = async (
  transaction: Transaction,
  event: NewEvent,
): Promise<{ id: string; version: number }> => {
  const values = eventValues(event)
  const [row] = await queryOf(transaction)<{ version: number | string }>(insert, values)
  return { id: values[2], version: Number(row!.version) }
}

/** The JSON of the payload around the digits of its version, which only the database knows. */
const payloadAround = (event: NewEvent, id: string, correlationId: string) => {
  const { type, data, extras = {}, organizationId, request } = event
  const rest = {
    apiVersion,
    correlationId,
    createdAt: new Date().toISOString(),
    ...(organizationId === undefined ? {} : { organizationId }),
    userAgent: request.userAgent,
    ip: request.ip,
    path: request.path,
    method: request.method,
    status: request.status,
    params: request.params,
    matchedRoute: request.matchedRoute,
    data: data ?? null,
  }
  const reserved = new Set(['hookId', 'id', 'event', 'version', ...Object.keys(rest)])
  const more = Object.fromEntries(Object.entries(extras).filter(([name]) => !reserved.has(name)))
  return {
    before: `{"id":"${id}","event":${JSON.stringify(type)},"version":`,
    after: `,${JSON.stringify({ ...rest, ...more }).slice(1)}`,
  }
}
