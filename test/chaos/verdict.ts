import type { Hook } from './load.ts'
import type { Taken } from './sink.ts'

/** An event as the ledger holds it. */
export interface RecordedEvent {
  id: string
  type: string
  entity: string
  version: number
}

export interface Verdict {
  events: number
  /** What should have arrived: every event at every hook that listens to it. */
  deliveries: number
  /** Event and hook, of those that never arrived. */
  missing: string[]
  /** First arrivals of an entity's events that came out of order. */
  outOfOrder: string[]
  /** What arrived although nobody asked for it. */
  strange: string[]
  /** Changes that were answered with success and left no event, or events with gaps in their versions. */
  unrecorded: string[]
  /** Arrivals beyond the first, and their part of all deliveries. */
  duplicates: number
  duplicateRate: number
}

/** Holds what arrived against what was recorded, and what was recorded against what was answered. */
export const judge = (options: {
  events: readonly RecordedEvent[]
  taken: readonly Taken[]
  hooks: readonly Pick<Hook, 'name' | 'events'>[]
  /** Changes that were answered with success, by entity. */
  confirmed: ReadonlyMap<string, number>
}): Verdict => {
  const { events, taken, hooks, confirmed } = options
  const wanted = new Map<string, RecordedEvent>()
  for (const hook of hooks)
    for (const event of events) if (hook.events.includes(event.type)) wanted.set(`${hook.name} ${event.id}`, event)

  const arrived = new Set<string>()
  const reached = new Map<string, number>()
  const outOfOrder: string[] = []
  const strange: string[] = []
  for (const { hook, eventId, entity, version } of taken) {
    const key = `${hook} ${eventId}`
    if (!wanted.has(key)) strange.push(key)
    // A repetition after a crash may come later than its successors' first arrivals.
    if (arrived.has(key)) continue
    arrived.add(key)
    const lane = `${hook} ${entity}`
    const before = reached.get(lane) ?? 0
    if (version < before) outOfOrder.push(`${lane}: ${version} after ${before}`)
    reached.set(lane, Math.max(before, version))
  }

  const deliveries = wanted.size
  const duplicates = taken.length - arrived.size
  return {
    events: events.length,
    deliveries,
    missing: [...wanted.keys()].filter((key) => !arrived.has(key)),
    outOfOrder,
    strange,
    unrecorded: unrecordedOf(events, confirmed),
    duplicates,
    duplicateRate: deliveries === 0 ? 0 : duplicates / deliveries,
  }
}

const unrecordedOf = (events: readonly RecordedEvent[], confirmed: ReadonlyMap<string, number>): string[] => {
  const versions = Map.groupBy(events, ({ entity }) => entity)
  const gaps = [...versions].flatMap(([entity, list]) => {
    const sorted = list.map(({ version }) => version).toSorted((left, right) => left - right)
    return sorted.every((version, index) => version === index + 1) ? [] : [`${entity}: versions ${sorted.join(' ')}`]
  })
  // The first event is the creation.
  const lost = [...confirmed].flatMap(([entity, count]) => {
    const recorded = (versions.get(entity)?.length ?? 0) - 1
    return recorded >= count ? [] : [`${entity}: ${count} changes answered, ${recorded} recorded`]
  })
  return [...gaps, ...lost]
}

/** Nothing lost, nothing out of order, and fewer duplicates than `maxDuplicateRate`. */
export const isGood = (verdict: Verdict, maxDuplicateRate: number): boolean =>
  verdict.deliveries > 0 &&
  [verdict.missing, verdict.outOfOrder, verdict.strange, verdict.unrecorded].every((list) => list.length === 0) &&
  verdict.duplicateRate < maxDuplicateRate
