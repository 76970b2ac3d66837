import { type Query, statement } from '../../../platform/database/database.ts'
import type { Minted, PolicyAnswer } from './history.ts'

/** What stands in many places about one session of impersonation. */

export interface SessionHistory {
  /** Null: an issuer of an older version wrote it. */
  minted: Minted | null
  policy: PolicyAnswer | null
  tokenId: string
  /** Of the exchange; null when the audit trail no longer has it. */
  exchange: { logId: string; ip?: string; userAgent?: string } | null
}

// The row of the exchange is one about the subject. Clocks of issuer and database may differ.
const history = statement(
  'impersonation-history',
  `SELECT s.minted, s.policy, s.token_id AS "tokenId",
     (SELECT json_strip_nulls(json_build_object('logId', l.id, 'ip', l.payload->'ip', 'userAgent', l.payload->'userAgent'))
      FROM logs l WHERE l.user_id = s.subject_id AND l.key = 'ExchangeTokenBy.TokenExchange'
        AND l.payload->>'sessionId' = s.id
        AND l.created_at BETWEEN s.started_at - interval '10 minutes' AND s.started_at + interval '10 minutes'
      LIMIT 1) AS exchange
   FROM impersonation_sessions s WHERE s.id = $1`,
)

export const findHistory = async (query: Query, sessionId: string): Promise<SessionHistory | undefined> =>
  (await query<SessionHistory>(history, [sessionId]))[0]

const askedFirst = statement(
  'impersonation-history-request',
  `SELECT created_at AS "createdAt", decided_at AS "decidedAt", read_only AS "readOnly", max_ttl AS "maxTtl"
   FROM impersonation_requests WHERE id = $1`,
)

export interface AskedFirst {
  createdAt: Date
  decidedAt: Date | null
  readOnly: boolean
  maxTtl: number | null
}

export const findAskedFirst = async (query: Query, requestId: string): Promise<AskedFirst | undefined> =>
  (await query<AskedFirst>(askedFirst, [requestId]))[0]

// Who acts through somebody else does so as that person: found by the index of actors.
const through = statement(
  'impersonations-opened-through',
  `SELECT id, subject_id AS "subjectId", client_id AS "clientId", started_at AS "startedAt"
   FROM impersonation_sessions WHERE actor_id = $2 AND actor_sid = $1 ORDER BY started_at, id LIMIT 100`,
)

export interface OpenedThrough {
  id: string
  subjectId: string
  clientId: string
  startedAt: Date
}

/** Sessions that were opened with the token of this one as actor token. */
export const findOpenedThrough = (query: Query, session: { id: string; subjectId: string }): Promise<OpenedThrough[]> =>
  query<OpenedThrough>(through, [session.id, session.subjectId])

const changes = statement(
  'impersonation-changes',
  `SELECT id, key, result, application_id AS "clientId", user_id AS "userId", payload->>'method' AS method,
     payload->>'path' AS path, coalesce(payload->'fields', '[]') AS fields, created_at AS "createdAt"
   FROM logs WHERE session_id = $1 ORDER BY created_at, id LIMIT $2`,
)

/** A change that an API made because of the session, as the audit trail has it. */
export interface NamedChange {
  id: string
  /** `Management.updateUser` */
  key: string
  result: 'Success' | 'Error'
  clientId: string | null
  userId: string | null
  method: string | null
  path: string | null
  /** Names of the members that were sent. */
  fields: string[]
  createdAt: Date
}

export const findChanges = (query: Query, sessionId: string, limit: number): Promise<NamedChange[]> =>
  query<NamedChange>(changes, [sessionId, limit])

// A change and its events are one transaction, and so have one time; that time and what they are about find them. An
// index of sessions on all events would cost every event something, for the few that name one.
const events = statement(
  'impersonation-events',
  `WITH changed AS (
     SELECT DISTINCT event->'entity'->>'kind' AS kind, event->'entity'->>'id' AS id, change.created_at
     FROM (SELECT payload, created_at FROM logs WHERE session_id = $1 ORDER BY created_at, id LIMIT $3) AS change,
       jsonb_array_elements(change.payload->'events') AS event),
   found AS (
     SELECT o.* FROM changed JOIN outbox o ON o.entity_kind = changed.kind AND o.entity_id = changed.id
       AND o.created_at = changed.created_at
     WHERE convert_from(o.payload, 'UTF8')::json->>'sid' = $1
     UNION ALL SELECT * FROM outbox WHERE entity_kind = 'impersonation' AND entity_id = $1
     UNION ALL SELECT * FROM outbox WHERE entity_kind = 'impersonation-request' AND entity_id = $2)
   SELECT id, type, json_build_object('kind', entity_kind, 'id', entity_id) AS entity, version,
     created_at AS "createdAt"
   FROM found ORDER BY seq`,
)

export interface NamedEvent {
  id: string
  type: string
  entity: { kind: string; id: string }
  version: number
  createdAt: Date
}

/** The events of the session itself, of the request that was approved, and of the first `limit` changes. */
export const findEvents = (
  query: Query,
  session: { id: string; approvalId: string | null },
  limit: number,
): Promise<NamedEvent[]> => query<NamedEvent>(events, [session.id, session.approvalId, limit])
