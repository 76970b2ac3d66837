import type { Comparison, Page } from '../harness/comparison.ts'
import { type Settings, type Spread, spread } from '../harness/measure.ts'
import { type BenchProcess, support, underTest } from '../harness/process.ts'
import { range } from '../harness/report.ts'
import type { Stage } from '../harness/stage.ts'
import type { Posting } from '../peers/bare-poster.ts'
import type { Arrivals, SinkPorts } from '../peers/webhook-sink.ts'
import { payloadBytes, type RelayWorld, seedRelay } from '../targets/relay-seed-store.ts'
import { startPostgres } from './issuer.ts'

/**
 * The way of an event from its commit to its receiver: how many a second next to a loop that only POSTs, how long one
 * takes when there are 200 a second, with a receiver beside it that never answers, and what a large backlog takes of
 * memory.
 */
export const relay: Comparison = {
  name: 'relay',
  fixedConnections: 16,
  title: 'Webhooks: outbox → relay → receiver on Postgres (fsync on), signed, in order, every attempt stored',
  run: async (stage, settings, progress) => {
    const world = await prepare(stage)
    const rates = await measureRates(world, settings, progress)
    const seconds = Math.max(settings.seconds, leastOfLatency)
    const latencies = await measureLatencies(world, { ...settings, seconds }, progress)
    progress(`a backlog of ${largeBacklog} events`)
    const backlog = await drain(world, largeBacklog)
    const peak = await world.relay.call<number>('peakMemory')
    return page({ rates, latencies, backlog: { ...backlog, peak } })
  },
}

/**
 * On a machine with much memory Node lets young objects fill 128 MB before it looks at them; where memory is limited it
 * does not.
 */
const smallHeap = ['--max-semi-space-size=8']
const largeBacklog = 100_000
const eventsPerSecond = 200
/** With fewer seconds a 99th percentile is one or two events that met a checkpoint. */
const leastOfLatency = 10
/**
 * What either side gets through in a second, about, so that a round lasts as long as it says and begins and ends count
 * for little.
 */
const perSecondOfRound = { posts: 50_000, events: 8_000 }
const bars = { ratio: 0.15, p50Ms: 10, p99Ms: 50, moved: 1.2, peak: 256 * 1_048_576 }

type Prepared = {
  ledger: RelayWorld
  sink: BenchProcess
  ports: SinkPorts
  poster: BenchProcess
  relay: BenchProcess
}

const prepare = async (stage: Stage): Promise<Prepared> => {
  const ledger = await seedRelay(await startPostgres(stage))
  stage.onStop(ledger.close)
  const file = (path: string) => new URL(path, import.meta.url)
  const { process: sink, result: ports } = await stage.start<SinkPorts>(file('../peers/webhook-sink.ts'), support)
  const { process: poster } = await stage.start(file('../peers/bare-poster.ts'), underTest)
  await ledger.addHooks(`http://127.0.0.1:${ports.port}/`)
  const { connection, key } = ledger
  const target = file('../targets/relay.ts')
  const { process: relayProcess } = await stage.start(target, underTest, { connection, key }, smallHeap)
  return { ledger, sink, ports, poster, relay: relayProcess }
}

/** `walBytes`: of write-ahead log for each delivery. */
type Rate = { perSecond: number; cpuMicros: number; walBytes?: number }

const post = async ({ sink, ports, poster }: Prepared, requests: number, connections: number): Promise<Rate> => {
  await sink.call('clear')
  const before = await poster.call<number>('cpu')
  const posting: Posting = { port: ports.port, connections, requests, bytes: payloadBytes }
  const seconds = await poster.call<number>('run', posting)
  return { perSecond: requests / seconds, cpuMicros: ((await poster.call<number>('cpu')) - before) / requests }
}

/** From a committed backlog to the last arrival. */
const drain = async ({ ledger, sink, relay: process }: Prepared, events: number): Promise<Rate> => {
  await ledger.clear()
  await sink.call('clear')
  await ledger.addBacklog(events)
  const before = await process.call<number>('cpu')
  const logBefore = await ledger.walBytes()
  const started = performance.now()
  ledger.wake()
  const { signed, different } = await sink.call<{ signed: number; different: number }>('until', events)
  const seconds = (performance.now() - started) / 1000
  const cpuMicros = ((await process.call<number>('cpu')) - before) / events
  if (signed !== events || different !== events)
    throw new Error(`of ${events} events ${different} arrived, in ${signed} signed requests`)
  const walBytes = ((await ledger.walBytes()) - logBefore) / events
  return { perSecond: events / seconds, cpuMicros, walBytes }
}

const measureRates = async (
  world: Prepared,
  { rounds, seconds, connections }: Settings,
  progress: (line: string) => void,
) => {
  const posts = Math.ceil(seconds * perSecondOfRound.posts)
  // Five changes of each entity.
  const events = Math.ceil((seconds * perSecondOfRound.events) / 5) * 5
  progress('warm-up: rates')
  await post(world, posts, connections)
  await drain(world, events)
  const bare: Rate[] = []
  const ours: Rate[] = []
  for (let round = 1; round <= rounds; round += 1) {
    progress(`round ${round}/${rounds}: rates`)
    bare.push(await post(world, posts, connections))
    ours.push(await drain(world, events))
  }
  return { bare, ours }
}

type Latency = { p50Ms: number; p99Ms: number }
/** Also of all rounds together. */
type Latencies = { rounds: Latency[]; p99Ms: number }

/** An open loop: what is slow does not slow the next one down. */
const live = async ({ ledger, sink }: Prepared, seconds: number): Promise<number[]> => {
  await ledger.clear()
  await sink.call('clear')
  const count = Math.ceil(seconds * eventsPerSecond)
  const started = performance.now()
  const changes: Promise<{ id: string; committedAt: number }>[] = []
  for (let number = 0; number < count; number += 1) {
    const due = started + (number * 1000) / eventsPerSecond
    const ahead = due - performance.now()
    if (ahead > 0) await new Promise((resolve) => setTimeout(resolve, ahead))
    changes.push(ledger.change(number))
  }
  const committed = await Promise.all(changes)
  await sink.call('until', count)
  const arrivals = await sink.call<Arrivals>('arrivals')
  return committed.map(({ id, committedAt }) => arrivals[id]! - committedAt)
}

const latencyOf = (waited: readonly number[]): Latency => {
  const sorted = waited.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return { p50Ms: at(0.5), p99Ms: at(0.99) }
}
const latenciesOf = (rounds: readonly number[][]): Latencies => ({
  rounds: rounds.map(latencyOf),
  p99Ms: latencyOf(rounds.flat()).p99Ms,
})

const measureLatencies = async (world: Prepared, { rounds, seconds }: Settings, progress: (line: string) => void) => {
  progress('warm-up: latencies')
  await live(world, Math.max(1, seconds))
  const alone: number[][] = []
  const besideHung: number[][] = []
  for (let round = 1; round <= rounds; round += 1) {
    progress(`round ${round}/${rounds}: latencies`)
    alone.push(await live(world, seconds))
    const remove = await world.ledger.addHungHook(`http://127.0.0.1:${world.ports.hungPort}/`)
    besideHung.push(await live(world, seconds))
    await remove()
  }
  return { alone: latenciesOf(alone), besideHung: latenciesOf(besideHung) }
}

type Figures = {
  rates: { bare: Rate[]; ours: Rate[] }
  latencies: { alone: Latencies; besideHung: Latencies }
  backlog: Rate & { peak: number }
}

const page = (figures: Figures): Page => {
  const { rates, latencies, backlog } = figures
  const over = <Sample>(rounds: Sample[], pick: (sample: Sample) => number): Spread => spread(rounds.map(pick))
  const rateRow = (name: string, rounds: Rate[]) => [
    name,
    range(
      over(rounds, ({ cpuMicros }) => cpuMicros),
      1,
    ),
    range(
      over(rounds, ({ perSecond }) => perSecond),
      0,
    ),
    rounds[0]?.walBytes === undefined
      ? ''
      : range(
          over(rounds, ({ walBytes = 0 }) => walBytes),
          0,
        ),
  ]
  const latencyRow = (name: string, { rounds, p99Ms }: Latencies) => [
    name,
    range(
      over(rounds, ({ p50Ms }) => p50Ms),
      1,
    ),
    range(
      over(rounds, (round) => round.p99Ms),
      1,
    ),
    p99Ms.toFixed(1),
  ]
  const { alone: quiet, besideHung } = latencies
  const alone = { p50: over(quiet.rounds, ({ p50Ms }) => p50Ms), p99: over(quiet.rounds, ({ p99Ms }) => p99Ms) }
  const ratio = spread(rates.ours.map(({ perSecond }, round) => perSecond / rates.bare[round]!.perSecond))
  const moved = besideHung.p99Ms / quiet.p99Ms
  const verdict = (met: boolean) => (met ? 'met' : 'MISSED')
  const megabytes = (bytes: number) => `${Math.round(bytes / 1_048_576)} MB`
  return {
    figures,
    tables: [
      [
        ['', 'CPU µs/delivery', 'deliveries/s', 'write-ahead log, bytes/delivery'],
        rateRow('bare undici POST loop', rates.bare),
        rateRow('Surrogate relay', rates.ours),
        rateRow(`Surrogate relay, ${largeBacklog} events waiting`, [backlog]),
      ],
      [
        [`${eventsPerSecond} events/s, commit → POST`, 'p50 ms', 'p99 ms', 'p99 of all rounds'],
        latencyRow('Surrogate relay', latencies.alone),
        latencyRow('beside a receiver that never answers', latencies.besideHung),
      ],
      [
        ['', '', 'bar', ''],
        [
          'deliveries/s, relay / bare loop',
          `${range(ratio, 2)} ×`,
          `≥ ${bars.ratio} ×`,
          verdict(ratio.median >= bars.ratio),
        ],
        [
          'commit → POST, p50',
          `${range(alone.p50, 1)} ms`,
          `≤ ${bars.p50Ms} ms`,
          verdict(alone.p50.median <= bars.p50Ms),
        ],
        [
          'commit → POST, p99',
          `${range(alone.p99, 1)} ms`,
          `≤ ${bars.p99Ms} ms`,
          verdict(alone.p99.median <= bars.p99Ms),
        ],
        [
          'p99 beside a hung receiver / alone, all rounds',
          `${moved.toFixed(2)} ×`,
          `≤ ${bars.moved} ×`,
          verdict(moved <= bars.moved),
        ],
        [
          'memory at its highest',
          megabytes(backlog.peak),
          `≤ ${megabytes(bars.peak)}`,
          verdict(backlog.peak <= bars.peak),
        ],
      ],
    ],
  }
}
