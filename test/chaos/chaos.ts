import { setTimeout as delay } from 'node:timers/promises'
import { causeFaults, type FaultCounts, type FaultOptions } from './faults.ts'
import { type Hook, prepareLoad } from './load.ts'
import { createRandom } from './random.ts'
import { startSink } from './sink.ts'
import { openStage, type Stage } from './stage.ts'
import type { Variant } from './variants.ts'
import { judge, type RecordedEvent, type Verdict } from './verdict.ts'

export interface ChaosOptions {
  /** Changes to be made, at least. */
  events: number
  kills: number
  /** The broker is killed and all it has stored is removed. */
  wipes: number
  /** A relay sleeps beyond its lease. */
  stops: number
  /**
   * For changes and faults, two thirds of it; the rest is for what is still on its way then, which gets a minute at
   * least.
   */
  minutes: number
  /** The same seed causes the same faults in the same order; what meets what is up to the machine. */
  seed: number
  variant: Variant
  /**
   * People and roles that are changed. Default 120: the fewer, the more often one changes while a delivery about it is
   * tried again.
   */
  entities?: number
  targets?: FaultOptions['targets']
  /** Told what happens, line by line. */
  onProgress?(text: string): void
}

export interface ChaosReport extends Verdict {
  faults: FaultCounts
  /** Changes without an answer, because something was down. */
  unanswered: number
  /** Answers of the receiver. */
  answered: { refused: number; lost: number; late: number }
  loadSeconds: number
  /** From the last change to the last delivery; how long it was waited for when something never came. */
  drainSeconds: number
  /** Processes that ended although nobody killed them. */
  crashes: readonly string[]
  lastWords: string
}

const loadPart = 0.65
const leastDrainMs = 60_000
/** When nothing moves for so long, what is missing never comes. In ms. */
const stuckMs = 20_000

const userEvents = ['User.Created', 'User.Data.Updated']
const roleEvents = ['Role.Created', 'Role.Data.Updated']

/**
 * Runs everything under load while it is being killed, and then looks whether every committed event arrived everywhere,
 * in order.
 */
export const runChaos = async (options: ChaosOptions): Promise<ChaosReport> => {
  const { events, minutes, seed, variant, entities = 120, onProgress = () => {} } = options
  const random = createRandom(seed)
  const loadMs = minutes * 60_000 * loadPart
  const sink = await startSink(random.fork())
  const stage = await openStage({ variant, relays: 2 })
  try {
    const hooks: Hook[] = [
      { name: 'everything', url: sink.urlOf('everything'), events: [...userEvents, ...roleEvents] },
      { name: 'people', url: sink.urlOf('people'), events: userEvents },
    ]
    const load = await prepareLoad({ url: stage.issuerUrl, hooks, entities, random: random.fork() })
    onProgress('running')
    const begun = performance.now()
    const [faults] = await Promise.all([
      causeFaults({ ...options, stage, random: random.fork(), durationMs: loadMs, onFault: onProgress }),
      load.run(events, { perSecond: (events / loadMs) * 1_000, deadline: begun + loadMs * 1.2 }),
    ])
    const loadSeconds = (performance.now() - begun) / 1_000
    onProgress('draining')
    const deadline = Math.max(begun + minutes * 60_000, performance.now() + leastDrainMs)
    const drainSeconds = await drain(stage, () => sink.taken.length, deadline)
    const recorded = await stage.query<RecordedEvent>(
      `SELECT id, type, entity_kind || ' ' || entity_id AS entity, version::int AS version FROM outbox ORDER BY seq`,
    )
    const verdict = judge({ events: recorded, taken: sink.taken, hooks, confirmed: byEntity(load.confirmed) })
    return {
      ...verdict,
      faults,
      unanswered: load.unanswered,
      answered: sink.answered,
      loadSeconds,
      drainSeconds,
      crashes: stage.crashes,
      lastWords: stage.lastWords(),
    }
  } finally {
    await stage.close()
    await sink.close()
  }
}

/** `/users/abc` is `user abc` in the ledger. */
const byEntity = (paths: ReadonlyMap<string, number>) =>
  new Map([...paths].map(([path, count]) => [path.replace(/^\/(\w+)s\//, '$1 '), count]))

const openWork = `SELECT (SELECT count(*) FROM outbox_pending)::int AS events,
  (SELECT count(*) FROM deliveries WHERE state IN ('pending', 'retrying'))::int AS deliveries`

/** Waits until nothing is open, or nothing moves any more; in seconds. */
const drain = async (stage: Stage, arrived: () => number, deadline: number): Promise<number> => {
  const begun = performance.now()
  let state = ''
  let movedAt = begun
  while (performance.now() < deadline && performance.now() - movedAt < stuckMs) {
    // A connection may be one from before the last kill.
    const [row] = await stage.query<{ events: number; deliveries: number }>(openWork).catch(() => [])
    if (row?.events === 0 && row.deliveries === 0) break
    const now = `${row?.events} ${row?.deliveries} ${arrived()}`
    if (now !== state) movedAt = performance.now()
    state = now
    await delay(100)
  }
  return (performance.now() - begun) / 1_000
}
