import { availableParallelism } from 'node:os'
import type { Comparison, Page } from '../harness/comparison.ts'
import type { Load, LoadResult } from '../harness/load-generator.ts'
import { type Settings, type Spread, spread } from '../harness/measure.ts'
import { type BenchProcess, everywhere, support } from '../harness/process.ts'
import { range } from '../harness/report.ts'
import type { Server, Stage } from '../harness/stage.ts'
import type { SandboxRound } from '../targets/claims.ts'
import { hostile, script, seedScript } from '../targets/claims-seed-store.ts'
import { seedSurrogate } from '../targets/issuer-seed-store.ts'
import { type IssuerWorld, startPostgres, tokenContestants } from './issuer.ts'

/**
 * What a script of custom claims costs: the token exchange that waits for it, other clients while the script runs away
 * for one, and the sandbox beside bare threads that only make an engine, run the script and throw it away.
 */
export const claims: Comparison = {
  name: 'claims',
  // What is measured is what one caller waits for, not a queue that callers make themselves.
  fixedConnections: 1,
  title: 'Custom claims: a token exchange with a script, beside a hostile client, and the sandbox alone',
  async run(stage, settings, progress) {
    const world = await prepare(stage)
    progress('warm-up')
    const warmUp = { ...settings, seconds: Math.max(3, settings.seconds) }
    await exchanges(world.plain, world.honest, warmUp)
    await exchanges(world.scripted, world.honest, warmUp)
    await besideHostile(world, warmUp)
    const rounds = []
    for (let round = 1; round <= settings.rounds; round++) {
      progress(`round ${round}/${settings.rounds}`)
      rounds.push(await measureRound(world, settings))
    }
    return page(rounds)
  },
}

interface Issuer {
  server: Server
  world: IssuerWorld
}

interface World {
  plain: Issuer
  scripted: Issuer
  honest: BenchProcess
  attacker: BenchProcess
  sandbox: BenchProcess
}

const hostileConnections = 4
/** One processor is left for the thread that hands out the calls. */
const workers = Math.max(1, availableParallelism() - 1)
/** Single-use tokens that are minted for a second of load. */
const perSecond = 1_000
const hostilePerSecond = 400

const prepare = async (stage: Stage): Promise<World> => {
  const postgres = await startPostgres(stage)
  const start = async (name: string, withScript: boolean): Promise<Issuer> => {
    const { connection, close, ...world } = await seedSurrogate(postgres, undefined, name)
    stage.onStop(close)
    if (withScript) await seedScript(connection)
    // Both CPUs: its threads are what is measured.
    const server = await stage.serve(new URL('../targets/issuer.ts', import.meta.url), everywhere, { connection })
    return { server, world }
  }
  const process = async (file: string, cpu: typeof everywhere | typeof support) =>
    (await stage.start(new URL(file, import.meta.url), cpu)).process
  return {
    plain: await start('plain', false),
    scripted: await start('scripted', true),
    honest: await process('../harness/load-generator.ts', support),
    attacker: await process('../harness/load-generator.ts', support),
    sandbox: await process('../targets/claims.ts', everywhere),
  }
}

/** Token exchanges, minted ahead. */
const prepareLoad = async (
  { server, world }: Issuer,
  load: Omit<Load, 'port' | 'requests' | 'once'>,
  count: number,
) => {
  const [, exchange] = tokenContestants('issuer', server, world)
  const requests = await exchange!.requests(Math.ceil(count * load.seconds))
  return { ...load, port: server.port, requests, once: true }
}

const honestLoad = (issuer: Issuer, { connections, seconds }: Settings): Promise<Load> => {
  const expected = { status: 200, bodyIncludes: '"issued_token_type"' }
  return prepareLoad(issuer, { connections, seconds, expected }, perSecond)
}

const exchanges = async (issuer: Issuer, generator: BenchProcess, settings: Settings): Promise<LoadResult> =>
  generator.call<LoadResult>('run', await honestLoad(issuer, settings))

/** The honest client's exchanges, while each of the hostile one's runs until it is ended. */
const besideHostile = async ({ scripted, honest, attacker }: World, settings: Settings): Promise<LoadResult> => {
  const { seconds } = settings
  const attack = await prepareLoad(
    { ...scripted, world: { ...scripted.world, client: hostile } },
    { connections: hostileConnections, seconds, expected: { status: [400, 503], bodyIncludes: 'custom_claims' } },
    hostilePerSecond,
  )
  const wanted = await honestLoad(scripted, settings)
  const [result] = await Promise.all([honest.call<LoadResult>('run', wanted), attacker.call('run', attack)])
  return result
}

/** What the exchange above hands to its script, about. */
const input = JSON.stringify({
  token: { kind: 'AccessToken', jti: 'b5c1', aud: 'https://api.example.test/orders', clientId: 'bench' },
  context: {
    user: {
      id: 'user',
      name: 'User 1',
      customData: { note: 'x'.repeat(600) },
      roles: [{ id: 'r', name: 'Reader', scopes: [{ id: 's', name: 'read:orders', resource: { id: 'o' } }] }],
    },
    grant: { subjectTokenContext: { ticketId: 'T-1' } },
    application: { id: 'bench' },
  },
})

const measureRound = async (world: World, settings: Settings) => {
  const plain = await exchanges(world.plain, world.honest, settings)
  // A 99th percentile of few requests says little.
  const longer = { ...settings, seconds: 2 * settings.seconds }
  const scripted = await exchanges(world.scripted, world.honest, longer)
  const disturbed = await besideHostile(world, longer)
  const round: SandboxRound = { script, input, workers, seconds: settings.seconds }
  const bare = await world.sandbox.call<number>('bare', round)
  const ours = await world.sandbox.call<number>('ours', round)
  return { plain, scripted, disturbed, bare, ours }
}

type Round = Awaited<ReturnType<typeof measureRound>>

const page = (rounds: Round[]): Page => {
  const over = (pick: (round: Round) => number): Spread => spread(rounds.map(pick))
  const added = over(({ plain, scripted }) => scripted.p50Ms - plain.p50Ms)
  const moved = over(({ scripted, disturbed }) => disturbed.p99Ms / scripted.p99Ms)
  const kept = over(({ ours, bare }) => ours / bare)
  const verdict = (met: boolean) => (met ? 'met' : 'MISSED')
  return {
    tables: [
      [
        ['token exchange, one caller', 'p50, ms', 'p99, ms', 'requests/s'],
        ...(['plain', 'scripted', 'disturbed'] as const).map((name) => [
          { plain: 'without a script', scripted: 'with a script', disturbed: 'beside a hostile client' }[name],
          range(
            over((round) => round[name].p50Ms),
            2,
          ),
          range(
            over((round) => round[name].p99Ms),
            2,
          ),
          range(
            over((round) => round[name].requests / round[name].seconds),
            0,
          ),
        ]),
      ],
      [
        [`calls of the script, ${workers} thread${workers === 1 ? '' : 's'}`, 'calls/s'],
        [
          'bare QuickJS, a fresh context each',
          range(
            over(({ bare }) => bare),
            0,
          ),
        ],
        [
          'the sandbox',
          range(
            over(({ ours }) => ours),
            0,
          ),
        ],
      ],
      [
        ['', 'measured', 'bar', ''],
        ['a script adds to the exchange, p50, ms', range(added, 2), '≤ 2.5', verdict(added.median <= 2.5)],
        ['a hostile client moves the p99 of others by', range(moved, 2), '≤ 1.2', verdict(moved.median <= 1.2)],
        ['the sandbox / bare threads', range(kept, 2), '≥ 0.7', verdict(kept.median >= 0.7)],
      ],
    ],
    figures: rounds,
  }
}
