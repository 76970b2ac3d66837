import { setTimeout as delay } from 'node:timers/promises'
import type { Random } from './random.ts'
import type { Actor, Stage } from './stage.ts'

export interface FaultCounts {
  /** By the name of what was killed. */
  kills: Record<string, number>
  wipes: number
  stops: number
}

/** A relay that is stopped wakes up after its lease (8 s) has gone to another. In ms. */
const stoppedMs = 10_000
/** So many events gather in the broker before it is wiped; it is not waited for longer than `gatheringMs`. */
const gathered = 30
const gatheringMs = 8_000
/** How long something stays dead, in ms. */
const deadMs = { from: 50, to: 800 }

const confirmed = `SELECT count(*)::int AS events FROM outbox_pending WHERE published_at IS NOT NULL`

type Fault = 'kill' | 'wipe' | 'stop'

/** In an order that the seed decides, evenly over the time, with jitter. */
const plan = (counts: { kills: number; wipes: number; stops: number }, random: Random): Fault[] => {
  const faults: Fault[] = [
    ...Array<Fault>(counts.kills).fill('kill'),
    ...Array<Fault>(counts.wipes).fill('wipe'),
    ...Array<Fault>(counts.stops).fill('stop'),
  ]
  return faults
    .map((fault) => ({ fault, place: random.next() }))
    .toSorted((left, right) => left.place - right.place)
    .map(({ fault }) => fault)
}

export interface FaultOptions {
  stage: Stage
  random: Random
  /** Kills of everything in turn of chance; `wipes` and `stops` come on top. */
  kills: number
  wipes: number
  stops: number
  /** Over which they are spread, in ms. */
  durationMs: number
  /** What may be killed. Default all. */
  targets?: readonly ('postgres' | 'nats' | 'issuer' | 'relay')[]
  onFault?(text: string): void
}

/** Kills, wipes and stops; resolves when everything that was harmed runs again. */
export const causeFaults = async (options: FaultOptions): Promise<FaultCounts> => {
  const { stage, random, durationMs, targets = ['postgres', 'nats', 'issuer', 'relay'], onFault = () => {} } = options
  const { actors } = stage
  const counts: FaultCounts = { kills: {}, wipes: 0, stops: 0 }
  const down = new Set<Actor>()
  const recovering: Promise<void>[] = []

  const restart = async (actor: Actor) => {
    await delay(random.between(deadMs.from, deadMs.to))
    for (;;) {
      try {
        await actor.start()
        break
      } catch {
        // Its database was away when it started, as when a supervisor starts things in any order.
        await actor.kill()
        await delay(200)
      }
    }
    down.delete(actor)
  }
  const kill = async (actor: Actor) => {
    await actor.kill()
    counts.kills[actor.name] = (counts.kills[actor.name] ?? 0) + 1
  }
  const harm = (actor: Actor) => {
    down.add(actor)
    recovering.push(kill(actor).then(() => restart(actor)))
  }
  const gather = async () => {
    const until = performance.now() + gatheringMs
    while (performance.now() < until) {
      // The database may be down just now.
      const [row] = await stage.query<{ events: number }>(confirmed).catch(() => [])
      if (row && row.events >= gathered) return
      await delay(50)
    }
  }
  /** The broker forgets what it has confirmed and no relay has seen yet: they are down meanwhile. */
  const wipe = (broker: Actor) => {
    const relays = up(actors.relays)
    for (const actor of [broker, ...relays]) down.add(actor)
    recovering.push(
      (async () => {
        await Promise.all(relays.map(kill))
        await gather()
        await kill(broker)
        await stage.wipe()
        counts.wipes += 1
        await Promise.all([broker, ...relays].map(restart))
      })(),
    )
  }
  const stop = (actor: Actor) => {
    down.add(actor)
    recovering.push(
      (async () => {
        actor.signal('SIGSTOP')
        counts.stops += 1
        await delay(stoppedMs)
        actor.signal('SIGCONT')
        down.delete(actor)
      })(),
    )
  }
  const up = (candidates: readonly Actor[]) => candidates.filter((actor) => !down.has(actor))
  const candidates = {
    postgres: [actors.postgres],
    nats: [actors.nats],
    issuer: [actors.issuer],
    relay: actors.relays,
  }

  const faults = plan(options, random)
  const apart = durationMs / (faults.length + 1)
  for (const fault of faults) {
    await delay(apart * random.between(0.6, 1.4))
    const kinds = fault === 'wipe' ? (['nats'] as const) : fault === 'stop' ? (['relay'] as const) : targets
    let possible: Actor[] = []
    // What is to be wiped or stopped may be down just now.
    for (let waited = 0; possible.length === 0 && waited < 600; waited += 1) {
      if (waited > 0) await delay(50)
      possible = up(kinds.flatMap((kind) => candidates[kind]))
    }
    // Kinds first, then one of the kind: two relays are not killed twice as often.
    const kind = random.pick(kinds.filter((one) => up(candidates[one]).length > 0))
    if (kind === undefined) continue
    const actor = random.pick(up(candidates[kind]))
    onFault(`${fault} ${actor.name}`)
    if (fault === 'stop') stop(actor)
    else if (fault === 'wipe') wipe(actor)
    else harm(actor)
  }
  await Promise.all(recovering)
  return counts
}
