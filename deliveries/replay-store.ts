import { z } from 'zod'
import { typesMatching } from '../events/event-patterns.ts'
import { oneRow, type Query, statement } from '../platform/database/database.ts'
import { announceLanes } from './lane-notice-store.ts'
import { openAnew, openLanes } from './reopen-store.ts'

/**
 * A replay walks the events of a filter in order and queues each once. An ended delivery is opened again: same id, same
 * bytes, same place in its lane, so before later unsent events. An event without a delivery gets one.
 */
export const replayStates = ['succeeded', 'dead', 'cancelled', 'missing'] as const

/** Milliseconds since the epoch, until the year 9999. */
const time = z.number().int().min(0).max(253_402_300_799_999)

export const replayFilter = z.object({
  /**
   * What is on its way already (pending, retrying) is not queued again. `missing`: the hook listens to it now, and has
   * no delivery for it.
   */
  states: z.array(z.enum(replayStates)).min(1),
  /** Events that happened from then on, … */
  since: time.optional(),
  /** … and before then. */
  until: time.optional(),
  /** Event types; absent = all. */
  types: z.array(z.string()).optional(),
  entity: z.object({ kind: z.string(), id: z.string() }).optional(),
  organizationIds: z.array(z.string()).optional(),
})
export type ReplayFilter = z.output<typeof replayFilter>

export interface Replay {
  id: string
  hookId: string
  filter: ReplayFilter
  /** Events that matched when it was asked for. */
  total: number
  /** Queued so far. In the end fewer than `total` when some were queued otherwise, or removed, meanwhile. */
  queued: number
  state: 'running' | 'done' | 'cancelled'
  createdAt: Date
  finishedAt: Date | null
}

// Not before they are ingested: until then their deliveries are still to come.
const matching = `NOT EXISTS (SELECT FROM outbox_pending AS pending WHERE pending.seq = event.seq OFFSET 0) AND coalesce(delivery.state, 'missing') = ANY($2::text[])
     AND ($3::timestamptz IS NULL OR event.created_at >= $3) AND ($4::timestamptz IS NULL OR event.created_at < $4)
     AND ($5::text[] IS NULL OR event.type = ANY($5)) AND ($6::text IS NULL OR event.entity_kind = $6)
     AND ($7::text IS NULL OR event.entity_id = $7) AND ($8::text[] IS NULL OR event.organization_id = ANY($8))
     AND (delivery.id IS NOT NULL OR (event.type = ANY($9::text[])
       AND ($10::text[] IS NULL OR event.organization_id = ANY($10))))`
const anyEvent = `outbox AS event LEFT JOIN LATERAL (
     SELECT id, state FROM deliveries
     WHERE hook_id = $1 AND entity_kind = event.entity_kind AND entity_id = event.entity_id AND version = event.version LIMIT 1
   ) AS delivery ON true`

export interface Listener {
  id: string
  /** Types and wildcards. */
  events: readonly string[]
  organizationIds: readonly string[] | null
}

const filterValues = (hook: Listener, filter: ReplayFilter) => [
  hook.id,
  filter.states,
  filter.since === undefined ? null : new Date(filter.since),
  filter.until === undefined ? null : new Date(filter.until),
  filter.types ?? null,
  filter.entity?.kind ?? null,
  filter.entity?.id ?? null,
  filter.organizationIds ?? null,
  typesMatching(hook.events),
  hook.organizationIds,
]

const extent = `count(*) AS total, coalesce(min(event.seq), 1) - 1 AS "before", coalesce(max(event.seq), 0) AS last`
const measure = statement('replay-measure', `SELECT ${extent} FROM ${anyEvent} WHERE ${matching}`)
// Reads the deliveries of one hook, not every event there is.
const measureDeliveries = statement(
  'replay-measure-deliveries',
  `SELECT ${extent} FROM deliveries AS delivery JOIN outbox AS event ON event.id = delivery.event_id
   WHERE delivery.hook_id = $1 AND delivery.created_at > '-infinity' AND ${matching}`,
)

export interface ReplayExtent {
  total: number
  /** The seqs between which it walks. */
  before: number
  last: number
}

/** What a replay would queue now. */
export const measureReplay = async (query: Query, hook: Listener, filter: ReplayFilter): Promise<ReplayExtent> => {
  const statement = filter.states.includes('missing') ? measure : measureDeliveries
  return oneRow(query<ReplayExtent>(statement, filterValues(hook, filter)))
}

const shown = `id, hook_id AS "hookId", filter, total, queued, state, created_at AS "createdAt", finished_at AS "finishedAt"`

const insert = statement(
  'replay-insert',
  `INSERT INTO replays (id, hook_id, filter, total, done_seq, last_seq) VALUES ($1, $2, $3::jsonb, $4, $5, $6) RETURNING ${shown}`,
)

export const insertReplay = async (
  query: Query,
  replay: { id: string; hookId: string; filter: ReplayFilter; extent: ReplayExtent },
): Promise<Replay> => {
  const { id, hookId, filter, extent } = replay
  const values = [id, hookId, JSON.stringify(filter), extent.total, extent.before, extent.last]
  return oneRow(query<Replay>(insert, values))
}

const find = statement('replay-find', `SELECT ${shown} FROM replays WHERE hook_id = $1 AND id = $2`)
const page = statement(
  'replay-list',
  `SELECT ${shown} FROM replays WHERE hook_id = $1 ORDER BY replays.created_at DESC, id LIMIT $2 OFFSET $3`,
)
const count = statement('replay-list-count', `SELECT count(*) AS total FROM replays WHERE hook_id = $1`)
const cancel = statement(
  'replay-cancel',
  `UPDATE replays SET state = 'cancelled', finished_at = now() WHERE hook_id = $1 AND id = $2 AND state = 'running'`,
)

export const findReplay = async (query: Query, hookId: string, id: string): Promise<Replay | undefined> =>
  (await query<Replay>(find, [hookId, id]))[0]

export const listReplays = async (query: Query, hookId: string, slice: { limit: number; offset: number }) => {
  const [rows, { total }] = await Promise.all([
    query<Replay>(page, [hookId, slice.limit, slice.offset]),
    oneRow(query<{ total: number }>(count, [hookId])),
  ])
  return { rows, total }
}

/** Ends a replay. What it has queued stays. */
export const cancelReplay = async (query: Query, hookId: string, id: string): Promise<void> => {
  await query(cancel, [hookId, id])
}

const lock = statement(
  'replay-lock',
  `SELECT FROM replays WHERE hook_id = $1 AND state = 'running' ORDER BY id FOR UPDATE`,
)

/** Call it before a hook is locked to be deleted: `continueReplay` locks the replay first and its hook after. */
export const lockReplays = async (query: Query, hookId: string): Promise<void> => {
  await query(lock, [hookId])
}

// Any of them, so that a short one does not wait for the end of a long one. `skip locked`: several processes work on
// different replays. The hook may be locked by others: it is only read.
const claim = statement(
  'replay-claim',
  `SELECT replays.id, replays.filter, done_seq AS "doneSeq", last_seq AS "lastSeq", hooks.id AS "hookId", hooks.events,
          hooks.organization_ids AS "organizationIds"
   FROM replays JOIN hooks ON hooks.id = replays.hook_id
   WHERE replays.state = 'running' ORDER BY random() LIMIT 1 FOR UPDATE OF replays SKIP LOCKED`,
)
const stretch = statement(
  'replay-stretch',
  `SELECT max(seq) AS last FROM (
     SELECT seq FROM outbox WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT $3) AS next`,
)
const queue = statement(
  'replay-queue',
  `WITH hook AS MATERIALIZED (SELECT id FROM hooks WHERE id = $1 FOR KEY SHARE),
   chosen AS MATERIALIZED (
     SELECT event.id, event.seq, event.type, event.entity_kind, event.entity_id, event.version, delivery.id AS delivery_id
     FROM hook CROSS JOIN ${anyEvent} WHERE ${matching} AND event.seq > $11 AND event.seq <= $12
   ),
   again AS (
     UPDATE deliveries SET ${openAnew}
     WHERE id = ANY(ARRAY(SELECT delivery_id FROM chosen)) AND finished_at IS NOT NULL
     RETURNING hook_id, entity_kind, entity_id, version
   ),
   added AS (
     INSERT INTO deliveries (hook_id, event_id, type, entity_kind, entity_id, version)
     SELECT $1, id, type, entity_kind, entity_id, version FROM chosen WHERE delivery_id IS NULL ORDER BY seq
     ON CONFLICT DO NOTHING
     RETURNING hook_id, entity_kind, entity_id, version
   ),
   queued AS (SELECT * FROM again UNION ALL SELECT * FROM added),
   opened AS (${openLanes('queued')})
   SELECT count(*) AS queued FROM queued`,
)
const advance = statement(
  'replay-advance',
  `UPDATE replays SET done_seq = $2, queued = queued + $3, state = CASE WHEN $4 THEN 'done' ELSE state END,
     finished_at = CASE WHEN $4 THEN now() END
   WHERE id = $1`,
)

interface Claimed extends Listener {
  hookId: string
  filter: unknown
  doneSeq: number
  lastSeq: number
}

/**
 * Continues a running replay by one stretch of events, in the caller's transaction. Undefined if there is none, or
 * others are at all of them. What was queued and how far it got are committed together, so nothing is queued twice.
 */
export const continueReplay = async (query: Query, events: number): Promise<{ queued: number } | undefined> => {
  const [replay] = await query<Claimed>(claim, [])
  if (replay === undefined) return undefined
  const { doneSeq, lastSeq } = replay
  const filter = replayFilter.parse(replay.filter)
  const [next] = await query<{ last: number | null }>(stretch, [doneSeq, lastSeq, events])
  const until = next?.last ?? lastSeq
  const values = filterValues({ ...replay, id: replay.hookId }, filter)
  const { queued } = await oneRow(query<{ queued: number }>(queue, [...values, doneSeq, until]))
  if (queued > 0) await announceLanes(query)
  await query(advance, [replay.id, until, queued, until >= lastSeq])
  return { queued }
}
