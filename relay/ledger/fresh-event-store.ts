import { entityOf, type LockedEvent, listeners, subjectsOf } from '../../events/ledger-store.ts'
import { type Query, statement } from '../../platform/database.ts'

/** Which events may be sent while they are being taken in, and to whom. Most deliveries concern entities of which nothing else is under way. */

/** Hooks that may be told of the events of a batch, at most: with more, all is left to lanes. */
const mostListeners = 1_000
/** Deliveries that are looked at for each that may be tried. */
const looks = 8
/** Up to this size of their table, in bytes, a hook's lanes are found without knowing their entities. */
const surveyable = 1_048_576

// Nothing is locked: a change of a hook must not wait for receivers. That a hook has no lanes is asked only while their table is small: of lanes
// that are gone there may be a hundred thousand, each of which would be looked at until they are vacuumed.
const listening = statement(
  'fresh-events-listening',
  `WITH ${listeners()}
   SELECT wanted.id, string_agg(wanted.type, ' ') AS types, organization_ids AS "organizationIds", is_well AND prompt.id IS NOT NULL AS "isTried",
     (SELECT pg_relation_size('lanes')) > ${surveyable} OR EXISTS (SELECT FROM lanes WHERE lanes.hook_id = wanted.id OFFSET 0) AS "mayHaveLanes",
     EXISTS (SELECT FROM deliveries WHERE deliveries.hook_id = wanted.id AND died_at IS NOT NULL OFFSET 0) AS "hasGaps"
   FROM wanted LEFT JOIN unnest($1::text[]) AS prompt (id) ON prompt.id = wanted.id
   GROUP BY wanted.id, organization_ids, is_well, prompt.id
   LIMIT ${mostListeners + 1}`,
)
// What waits in a lane, or comes after a delivery that was given up (`Surrogate-Gap`), is for who works lanes off. `version`: null where a hook
// has no gaps.
const occupied = statement(
  'fresh-events-occupied',
  `SELECT number
   FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY AS asked (hook_id, entity_kind, entity_id, version, number)
   WHERE EXISTS (
       SELECT FROM lanes
       WHERE lanes.hook_id = asked.hook_id AND lanes.entity_kind = asked.entity_kind AND lanes.entity_id = asked.entity_id OFFSET 0)
     OR version > 1 AND coalesce((
       SELECT died_at IS NOT NULL FROM deliveries
       WHERE deliveries.hook_id = asked.hook_id AND deliveries.entity_kind = asked.entity_kind
         AND deliveries.entity_id = asked.entity_id AND deliveries.version < asked.version
       ORDER BY deliveries.version DESC LIMIT 1), false)`,
)

interface ListenerRow {
  id: string
  /** Those of the types that were asked for, with a space between. */
  types: string
  organizationIds: readonly string[] | null
  isTried: boolean
  mayHaveLanes: boolean
  /** Deliveries of it were given up. */
  hasGaps: boolean
}

/** An event that is just being taken in, and the hooks to which it may be sent right away. */
export interface FreshEvent {
  event: LockedEvent
  hookIds: string[]
  /** No other hook is told of it. */
  isAll: boolean
}

interface Listener extends Omit<ListenerRow, 'organizationIds'> {
  /** Undefined: all, and events of none. */
  organizationIds: ReadonlySet<string> | undefined
}

/** Finds who is told of an event. */
const audience = (rows: readonly ListenerRow[]) => {
  const byType = new Map<string, Listener[]>()
  for (const row of rows) {
    const listener = {
      ...row,
      organizationIds: row.organizationIds === null ? undefined : new Set(row.organizationIds),
    }
    for (const type of row.types.split(' ')) {
      const ofType = byType.get(type)
      if (ofType) ofType.push(listener)
      else byType.set(type, [listener])
    }
  }
  return ({ type, organizationId }: LockedEvent): Listener[] =>
    (byType.get(type) ?? []).filter(({ organizationIds }) => organizationIds?.has(organizationId ?? '') ?? true)
}

interface Told {
  event: LockedEvent
  by: readonly Listener[]
}

const pairOf = (hookId: string, event: LockedEvent) => `${hookId} ${entityOf(event)}`

/** Pairs of hook and entity that must wait, by `pairOf`. */
const occupiedOf = async (query: Query, told: readonly Told[]): Promise<ReadonlySet<string>> => {
  // An entity's first event speaks for those that follow it.
  const unsure = new Map<string, { listener: Listener; event: LockedEvent }>()
  for (const { event, by } of told)
    for (const listener of by) {
      if (!listener.isTried || !(listener.mayHaveLanes || listener.hasGaps)) continue
      const pair = pairOf(listener.id, event)
      if (!unsure.has(pair)) unsure.set(pair, { listener, event })
    }
  if (unsure.size === 0) return new Set()
  const asked = [...unsure.values()]
  const rows = await query<{ number: number }>(occupied, [
    asked.map(({ listener }) => listener.id),
    asked.map(({ event }) => event.entityKind),
    asked.map(({ event }) => event.entityId),
    asked.map(({ listener, event }) => (listener.hasGaps ? event.version : null)),
  ])
  const pairs = [...unsure.keys()]
  return new Set(rows.map(({ number }) => pairs[number - 1]!))
}

/**
 * Those of the events of which nobody else can send anything before this transaction ends, in the order in which they happened: with not more
 * than `most` deliveries together, to the hooks that are given. Those whose payload was not read are among them, so that nothing of their
 * entity overtakes them.
 */
export const freshEvents = async (
  query: Query,
  ready: readonly LockedEvent[],
  { hookIds, most }: { hookIds: readonly string[]; most: number },
): Promise<FreshEvent[]> => {
  const found = await query<ListenerRow>(listening, [hookIds, ...subjectsOf(ready)])
  if (found.length > mostListeners) return []
  const listenersTo = audience(found)
  const told: Told[] = []
  let looked = 0
  for (const event of ready.toSorted((left, right) => left.seq - right.seq)) {
    const by = listenersTo(event)
    looked += by.length
    if (looked > most * looks) break
    told.push({ event, by })
  }
  const waiting = await occupiedOf(query, told)
  const fresh: FreshEvent[] = []
  let tries = 0
  for (const { event, by } of told) {
    const free = by.filter(({ id, isTried }) => isTried && !(waiting.size > 0 && waiting.has(pairOf(id, event))))
    tries += free.length
    if (tries > most) break
    if (free.length > 0) fresh.push({ event, hookIds: free.map(({ id }) => id), isAll: free.length === by.length })
  }
  return fresh
}
