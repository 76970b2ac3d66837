import type { Contestant, Prepared, Ratio } from './comparison.ts'
import type { Load, LoadResult } from './load-generator.ts'
import type { BenchProcess } from './process.ts'

/**
 * Interleaved rounds (A B C, A B C, …): what changes on the machine over minutes hits every contestant alike. Ratios
 * are taken within a round and only then summarised.
 */
export type Sample = {
  /** CPU microseconds of the process under test for one request. */
  cpuMicros: number
  /** CPU microseconds of PostgreSQL for one request, where the contestant tells them. */
  databaseMicros?: number
  requestsPerSecond: number
  p50Ms: number
  p95Ms: number
  p99Ms: number
  /** CPU microseconds of the load generator for one request; should be below `cpuMicros`. */
  loadMicros: number
  requests: number
}

export type Spread = { median: number; low: number; high: number }

export type Measured = {
  samples: { contestant: string; atMostP95Ms?: number | undefined; rounds: Sample[] }[]
  ratios: (Ratio & { spread: Spread; met: boolean | undefined })[]
}

export type Settings = {
  rounds: number
  /** Length of a round; the warm-up before the first one is as long as a round, and at least 3 s. */
  seconds: number
  connections: number
}

/** Single-use requests prepared per second of a round: more than any contestant serves on one core. */
const singleUsePerSecond = 8000

type Dependencies = Settings & { prepared: Prepared; generator: BenchProcess; progress: (line: string) => void }

export const measure = async ({ prepared, generator, progress, ...settings }: Dependencies): Promise<Measured> => {
  const { contestants, ratios } = prepared
  const round = (contestant: Contestant, seconds: number) => runRound({ contestant, generator, settings, seconds })

  for (const contestant of contestants) {
    progress(`warm-up: ${contestant.name}`)
    await contestant.preflight?.()
    await round(contestant, Math.max(3, settings.seconds))
  }
  const samples = contestants.map(({ name, atMostP95Ms }) => ({
    contestant: name,
    atMostP95Ms,
    rounds: [] as Sample[],
  }))
  for (let number = 1; number <= settings.rounds; number++) {
    for (const [index, contestant] of contestants.entries()) {
      progress(`round ${number}/${settings.rounds}: ${contestant.name}`)
      samples[index]?.rounds.push(await round(contestant, settings.seconds))
    }
  }
  progress('')
  return { samples, ratios: ratios.map((ratio) => summariseRatio(ratio, samples)) }
}

type Round = { contestant: Contestant; generator: BenchProcess; settings: Settings; seconds: number }

const runRound = async ({ contestant, generator, settings, seconds }: Round): Promise<Sample> => {
  const {
    server,
    once = false,
    expected,
    protocol,
    streams,
    timesConnections = 1,
    databaseMicros = async () => Number.NaN,
  } = contestant
  const requests = await contestant.requests(Math.ceil(seconds * singleUsePerSecond))
  const load: Load = {
    port: server.port,
    connections: settings.connections * timesConnections,
    seconds,
    requests,
    once,
    expected,
    protocol,
    streams,
  }

  const databaseBefore = await databaseMicros()
  const before = await server.process.call<number>('cpu')
  const [result] = await Promise.all([
    generator.call<LoadResult>('run', load).catch((error: Error) => {
      throw new Error(`${contestant.name}: ${error.message}`)
    }),
    contestant.beside?.(seconds),
  ])
  const after = await server.process.call<number>('cpu')
  const databaseAfter = await databaseMicros()
  if (result.requests === 0) throw new Error(`${contestant.name}: not one request was answered`)
  return {
    cpuMicros: (after - before) / result.requests,
    ...(contestant.databaseMicros ? { databaseMicros: (databaseAfter - databaseBefore) / result.requests } : {}),
    requestsPerSecond: result.requests / result.seconds,
    p50Ms: result.p50Ms,
    p95Ms: result.p95Ms,
    p99Ms: result.p99Ms,
    loadMicros: result.cpuMicros / result.requests,
    requests: result.requests,
  }
}

export const spread = (values: number[]): Spread => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  const median = ((sorted[Math.ceil(middle) - 1] ?? Number.NaN) + (sorted[Math.floor(middle)] ?? Number.NaN)) / 2
  return { median, low: sorted[0] ?? Number.NaN, high: sorted.at(-1) ?? Number.NaN }
}

const summariseRatio = (ratio: Ratio, samples: Measured['samples']): Measured['ratios'][number] => {
  const costs = (name: string) => {
    const found = samples.find(({ contestant }) => contestant === name)
    if (!found) throw new Error(`no contestant is called "${name}"`)
    return found.rounds.map((sample) => costOf(sample, ratio) ?? Number.NaN)
  }
  const [of, to] = [costs(ratio.of), costs(ratio.to)]
  const plus = (ratio.plus ?? []).map(({ times, of: added }) => ({ times, added: costs(added) }))
  const beside = (round: number) => plus.reduce((sum, { times, added }) => sum + times * added[round]!, to[round]!)
  const within = spread(of.map((cost, round) => cost / beside(round)))
  return { ...ratio, spread: within, met: holds(ratio, within.median) }
}

const costOf = ({ cpuMicros, databaseMicros, p99Ms }: Sample, { cost }: Ratio): number | undefined => {
  if (cost === 'database') return databaseMicros
  return cost === 'p99' ? p99Ms : cpuMicros
}

const holds = ({ atMost, atLeast }: Ratio, value: number): boolean | undefined => {
  if (atMost === undefined && atLeast === undefined) return undefined
  return value <= (atMost ?? Number.POSITIVE_INFINITY) && value >= (atLeast ?? 0)
}
