import { setTimeout as delay } from 'node:timers/promises'
import { type Asker, createAsker } from '../harness/ask.ts'
import type { Comparison, Page } from '../harness/comparison.ts'
import type { Load, LoadResult } from '../harness/load-generator.ts'
import { type Settings, type Spread, spread } from '../harness/measure.ts'
import { type RuleFolder, ruleFolder } from '../harness/policy-rules.ts'
import { type BenchProcess, everywhere, support } from '../harness/process.ts'
import { range } from '../harness/report.ts'
import type { Stage } from '../harness/stage.ts'
import type { PoliciesTargetSettings } from '../targets/policies.ts'

/**
 * One caller, who waits for no queue of other callers. Load generator and gateway then take turns, and there is a CPU
 * left for the threads: two callers keep both CPUs busy by themselves, and what is measured is who waits for the third.
 */
const callers = 1
/** So many leave the threads no processor of their own. */
const busyCallers = 4

/**
 * What a caller notices of other people's policies: of isolated rules that run away, of shadow policies, and of a
 * document of 3 MB that is replaced. Each is the same load twice, in turn: with the gateway left alone, and with that
 * going on. And how long an edit of rules or documents takes to be in force.
 */
export const policies: Comparison = {
  name: 'policies',
  connections: callers,
  title: 'Policies: 99th percentile of a public route while …',
  run: async (stage, settings, progress) => {
    const world = await prepare(stage, settings)
    const results = []
    for (const disturbance of disturbances) {
      results.push({ ...disturbance, ...(await compare(world, disturbance, settings, progress)) })
    }
    const edits = []
    for (const { name, target, what } of editsOf(world)) {
      progress(name)
      const times: number[] = []
      for (let round = 0; round < settings.rounds; round++) times.push(await timeOfEdit(target, what))
      edits.push({ name, ms: spread(times) })
    }
    edits.push({ name: 'a document of 3 MB, under this load', ms: spread(world.underLoad) })
    return page(results, edits)
  },
}

/** The same where callers keep both CPUs busy: then whatever else runs takes time from them. */
export const policiesBusy: Comparison = {
  ...policies,
  name: 'policies-busy',
  connections: busyCallers,
  title: 'Policies, on a gateway without a processor to spare: 99th percentile of a public route while …',
}

/** The bars of these ratios of 99th percentiles. */
const disturbances = [
  { name: 'isolated rules run away, on the main thread', path: '/main', kind: 'runaway', atMost: 1.5 },
  { name: 'isolated rules run away, other isolated rules', path: '/isolated', kind: 'runaway', atMost: 1.5 },
  { name: 'the same, rules that read what is new each time', path: '/fresh', kind: 'runaway', atMost: 1.5 },
  { name: 'shadow policies are asked the same', path: '/main', kind: 'shadow', atMost: 1.2 },
  { name: 'a document of 3 MB is replaced twice a second', path: '/main', kind: 'swap', atMost: 1.2 },
] as const
type Disturbance = (typeof disturbances)[number]

/** From an edit to the first decision by it, in ms. */
const soonEnough = 1_000
const editsOf = ({ plain, large }: World) =>
  [
    { name: 'a rule', target: plain, what: 'rules' },
    { name: 'a document of 3 MB', target: large, what: 'documents' },
    { name: 'a rule beside a document of 3 MB', target: large, what: 'rules' },
  ] as const

const manyPlans = 75_000

/** `underLoad`: what edits of the large document took while it was replaced under load. */
type World = {
  plain: Target
  unshadowed: Target
  shadowed: Target
  large: Target
  callers: BenchProcess
  connections: number
  underLoad: number[]
}
type Target = { port: number; folder: RuleFolder; ask: Asker['ask'] }

const prepare = async (stage: Stage, { connections }: Settings): Promise<World> => {
  const serve = async (plans: number, settings: Omit<PoliciesTargetSettings, 'path'> = {}): Promise<Target> => {
    const folder = await ruleFolder(stage, plans)
    const file = new URL('../targets/policies.ts', import.meta.url)
    const { result: port } = await stage.start<number>(file, everywhere, { path: folder.path, ...settings })
    const { ask, close } = createAsker(port)
    stage.onStop(async () => close())
    return { port, folder, ask }
  }
  const generator = new URL('../harness/load-generator.ts', import.meta.url)
  return {
    plain: await serve(10, { isolated: true }),
    unshadowed: await serve(10),
    shadowed: await serve(10, { shadow: (await ruleFolder(stage, 10)).path }),
    large: await serve(manyPlans),
    callers: (await stage.start(generator, support)).process,
    connections,
    underLoad: [],
  }
}

const load = (world: World, { port }: Target, path: string, seconds: number): Promise<LoadResult> => {
  const requests = [`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`]
  const wanted: Load = {
    port,
    connections: world.connections,
    seconds,
    requests,
    once: false,
    expected: { status: 200, bodyIncludes: 'done' },
  }
  return world.callers.call<LoadResult>('run', wanted)
}

/** Runs the load while something else goes on; answers with its 99th percentile in ms. */
const during: Record<Disturbance['kind'], (world: World, path: string, seconds: number) => Promise<number>> = {
  async runaway(world, path, seconds) {
    let going = true
    const away = (async () => {
      // One after another, each refused: its rules were ended at the deadline, or no thread was free for them.
      while (going) {
        const status = await world.plain.ask('/slow')
        if (status !== 403 && status !== 503) throw new Error(`runaway rules were answered with ${status}`)
      }
    })()
    const { p99Ms } = await load(world, world.plain, path, seconds)
    going = false
    await away
    return p99Ms
  },
  shadow: async (world, path, seconds) => (await load(world, world.shadowed, path, seconds)).p99Ms,
  async swap(world, path, seconds) {
    let going = true
    const swapping = (async () => {
      while (going) {
        const took = await timeOfEdit(world.large, 'documents', 50)
        world.underLoad.push(took)
        await delay(Math.max(0, 500 - took))
      }
    })()
    const { p99Ms } = await load(world, world.large, path, seconds)
    going = false
    await swapping
    return p99Ms
  },
}

/** From the edit until the gateway decides by it, asked every `pause` ms. */
const timeOfEdit = async ({ folder, ask }: Target, what: 'rules' | 'documents', pause = 10): Promise<number> => {
  const start = performance.now()
  const mark = await folder.edit(what)
  for (;;) {
    const status = await ask(`/current/${mark}`)
    const took = performance.now() - start
    if (status === 200) return took
    if (status !== 403 || took > 30_000) throw new Error(`the edit is not in force: ${status}`)
    await delay(pause)
  }
}

const quiet = async (world: World, { kind, path }: Disturbance, seconds: number): Promise<number> =>
  (await load(world, world[kind === 'swap' ? 'large' : kind === 'shadow' ? 'unshadowed' : 'plain'], path, seconds))
    .p99Ms

const compare = async (
  world: World,
  disturbance: Disturbance,
  { rounds, seconds }: Settings,
  progress: (line: string) => void,
) => {
  const { name, kind, path } = disturbance
  progress(`warm-up: ${name}`)
  await quiet(world, disturbance, Math.max(1, seconds))
  await during[kind](world, path, Math.max(1, seconds))
  const alone: number[] = []
  const disturbed: number[] = []
  for (let round = 1; round <= rounds; round++) {
    progress(`round ${round}/${rounds}: ${name}`)
    alone.push(await quiet(world, disturbance, seconds))
    disturbed.push(await during[kind](world, path, seconds))
  }
  const ratio = spread(disturbed.map((value, round) => value / alone[round]!))
  return { alone: spread(alone), disturbed: spread(disturbed), ratio, met: ratio.median <= disturbance.atMost }
}

const page = (
  results: (Disturbance & Awaited<ReturnType<typeof compare>>)[],
  edits: { name: string; ms: Spread }[],
): Page => ({
  tables: [
    [
      ['while', 'alone, ms', 'then, ms', 'ratio', 'bar', ''],
      ...results.map(({ name, alone, disturbed, ratio, atMost, met }) => [
        name,
        range(alone, 2),
        range(disturbed, 2),
        range(ratio, 2),
        `≤ ${atMost}`,
        met ? 'met' : 'MISSED',
      ]),
    ],
    [
      ['from an edit to the first decision by it', 'ms', 'bar', ''],
      ...edits.map(({ name, ms }) => [
        name,
        range(ms, 0),
        `< ${soonEnough}`,
        ms.median < soonEnough ? 'met' : 'MISSED',
      ]),
    ],
  ],
  figures: { results, edits },
})
