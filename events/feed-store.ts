import { oneRow, type Query, statement } from '../platform/database/database.ts'

/**
 * Reading the ledger from a cursor on: a `seq`. Only up to where nothing can appear any more
 * (`issuer/directory/events/feed.ts`).
 */

const lastSeq = statement(
  'feed-last-seq',
  `SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS seq FROM outbox_seq_seq`,
)

/** The highest number that was given out; its transaction, and those of lower ones, may still be under way. */
export const lastSeqGiven = async (query: Query): Promise<number> =>
  (await oneRow(query<{ seq: number }>(lastSeq, []))).seq

// Whoever inserts takes this lock first, the number then, and gives the lock back after the commit has become visible.
const writers = statement(
  'feed-writers',
  `SELECT virtualtransaction AS id FROM pg_locks
   WHERE locktype = 'relation' AND relation = 'outbox'::regclass AND mode = 'RowExclusiveLock' AND granted
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
)

/** The transactions that are writing to the outbox now. */
export const writersNow = async (query: Query): Promise<Set<string>> =>
  new Set((await query<{ id: string }>(writers, [])).map(({ id }) => id))

const page = statement(
  'feed-page',
  `SELECT seq, payload FROM (
     SELECT seq, payload, sum(octet_length(payload)) OVER (ORDER BY seq) - octet_length(payload) AS before FROM (
       SELECT seq, payload FROM outbox
       WHERE seq > $1 AND seq <= $2 AND type = ANY($3::text[]) AND ($4::text[] IS NULL OR organization_id = ANY($4))
       ORDER BY seq LIMIT $5
     ) AS next
   ) AS measured
   WHERE before < $6 ORDER BY seq`,
)

// By the index of an entity's versions, whose order is that of its numbers.
const pageOfEntity = statement(
  'feed-page-entity',
  `SELECT seq, payload FROM (
     SELECT seq, version, payload, sum(octet_length(payload)) OVER (ORDER BY version) - octet_length(payload) AS before FROM (
       SELECT seq, version, payload FROM outbox
       WHERE seq > $1 AND seq <= $2 AND type = ANY($3::text[]) AND ($4::text[] IS NULL OR organization_id = ANY($4))
         AND entity_kind = $7 AND entity_id = $8
       ORDER BY version LIMIT $5
     ) AS next
   ) AS measured
   WHERE before < $6 ORDER BY version`,
)

export interface FeedRange {
  /** Not included. */
  after: number
  upTo: number
  types: readonly string[]
  /** Undefined: of every organization, and of none. */
  organizationIds?: readonly string[] | undefined
  /** Undefined: of every entity. */
  entity?: { kind: string; id: string } | undefined
  limit: number
  /** Stops after the event that reaches it. */
  maxBytes: number
}

/** In the order in which they were recorded, which for one entity is the order of its versions. */
export const readFeed = (query: Query, range: FeedRange): Promise<{ seq: number; payload: Buffer }[]> => {
  const { after, upTo, types, organizationIds = null, entity, limit, maxBytes } = range
  const values = [after, upTo, types, organizationIds, limit, maxBytes]
  return entity ? query(pageOfEntity, [...values, entity.kind, entity.id]) : query(page, values)
}

const heads = statement(
  'feed-heads',
  `SELECT seq, id, type, json_build_object('kind', entity_kind, 'id', entity_id) AS entity, version,
     organization_id AS "organizationId", correlation_id AS "correlationId", created_at AS "createdAt"
   FROM outbox WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT $3`,
)

/** An event without what it says. */
export interface EventHead {
  seq: number
  id: string
  type: string
  entity: { kind: string; id: string }
  version: number
  organizationId: string | null
  correlationId: string
  createdAt: Date
}

export const readHeads = (query: Query, { after, upTo, limit }: Pick<FeedRange, 'after' | 'upTo' | 'limit'>) =>
  query<EventHead>(heads, [after, upTo, limit])

const removed = statement('feed-removed', `SELECT seq FROM outbox_removed`)
const before = statement(
  'feed-before',
  `SELECT coalesce(min(seq) - 1, (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM outbox_seq_seq)) AS seq
   FROM outbox WHERE created_at >= $1`,
)

/** Whoever has read less than up to here has missed events: retention has removed them. */
export const removedUpTo = async (query: Query): Promise<number> =>
  (await oneRow(query<{ seq: number }>(removed, []))).seq

/** The cursor before everything that was recorded since then. */
export const cursorBefore = async (query: Query, since: Date): Promise<number> =>
  (await oneRow(query<{ seq: number }>(before, [since]))).seq
