import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Comparison, Page } from '../harness/comparison.ts'
import type { Load, LoadResult } from '../harness/load-generator.ts'
import { type Settings, spread } from '../harness/measure.ts'
import { type BenchProcess, everywhere, support } from '../harness/process.ts'
import { range } from '../harness/report.ts'
import type { Stage } from '../harness/stage.ts'
import type { PoliciesTargetSettings } from '../targets/policies.ts'

/**
 * What a caller notices of other people's policies: of isolated rules that run away, of shadow policies, and of a document of 3 MB that
 * is replaced. Each is the same load twice, in turn: with the gateway left alone, and with that going on.
 */
export const policies: Comparison = {
  name: 'policies',
  title: 'Policies: 99th percentile of a public route while …',
  run: async (stage, settings, progress) => {
    const world = await prepare(stage)
    const results = []
    for (const disturbance of disturbances) {
      results.push({ ...disturbance, ...(await compare(world, disturbance, settings, progress)) })
    }
    return page(results)
  },
}

/** The bars of these ratios of 99th percentiles. */
const disturbances = [
  { name: 'isolated rules run away, on the main thread', path: '/main', kind: 'runaway', atMost: 1.5 },
  { name: 'isolated rules run away, other isolated rules', path: '/isolated', kind: 'runaway', atMost: 1.5 },
  { name: 'shadow policies are asked the same', path: '/main', kind: 'shadow', atMost: 1.2 },
  { name: 'a document of 3 MB is replaced twice a second', path: '/main', kind: 'swap', atMost: 1.2 },
] as const
type Disturbance = (typeof disturbances)[number]

/** `slow` compares two texts of a megabyte place by place, which takes minutes. */
const rules = `package bench

# METADATA
# entrypoint: true
decision := {"allow": data.plans[input.request.host] != "none"} if input.request.method == "GET"

# METADATA
# entrypoint: true
slow := {"allow": contains(text, part)} if {
	text := concat("", ["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" | some _ in numbers.range(1, 20000)])
	part := concat("", [substring(text, 0, 300000), input.request.id])
}
`
const documents = (plans: number, mark: number): string =>
  JSON.stringify({
    mark,
    plans: {
      '127.0.0.1': 'gold',
      ...Object.fromEntries(
        Array.from({ length: plans }, (_, index) => [`customer-${index}.example.test`, `plan-${index % 7}`]),
      ),
    },
  })
/** Of about 40 bytes each: 3 MB. */
const manyPlans = 75_000

type World = { plain: Target; shadowed: Target; large: Target; callers: BenchProcess }
type Target = { process: BenchProcess; port: number; folder: string }

const prepare = async (stage: Stage): Promise<World> => {
  const folderOf = async (plans: number): Promise<string> => {
    const folder = await mkdtemp(join(tmpdir(), 'surrogate-bench-'))
    stage.onStop(() => rm(folder, { recursive: true }))
    await writeFile(join(folder, 'bench.rego'), rules)
    await writeFile(join(folder, 'data.json'), documents(plans, 0))
    return folder
  }
  const serve = async (plans: number, shadow?: string): Promise<Target> => {
    const folder = await folderOf(plans)
    const settings: PoliciesTargetSettings = { path: folder, ...(shadow !== undefined && { shadow }) }
    const file = new URL('../targets/policies.ts', import.meta.url)
    const { process, result: port } = await stage.start<number>(file, everywhere, settings)
    return { process, port, folder }
  }
  const generator = new URL('../harness/load-generator.ts', import.meta.url)
  return {
    plain: await serve(10),
    shadowed: await serve(10, await folderOf(10)),
    large: await serve(manyPlans),
    callers: (await stage.start(generator, support)).process,
  }
}

/** Few callers: what is measured is what one waits for, not a queue that they make themselves. */
const connections = 4

const load = (world: World, { port }: Target, path: string, seconds: number): Promise<LoadResult> => {
  const requests = [`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`]
  const wanted: Load = {
    port,
    connections,
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
        const { status } = await fetch(`http://127.0.0.1:${world.plain.port}/slow`)
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
    const { process, folder } = world.large
    let mark = 0
    const swap = () => process.call('write', { file: join(folder, 'data.json'), text: documents(manyPlans, ++mark) })
    let last = swap()
    const swapping = setInterval(() => {
      last = swap()
    }, 500)
    const { p99Ms } = await load(world, world.large, path, seconds)
    clearInterval(swapping)
    await last
    return p99Ms
  },
}

const quiet = async (world: World, { kind, path }: Disturbance, seconds: number): Promise<number> =>
  (await load(world, kind === 'swap' ? world.large : world.plain, path, seconds)).p99Ms

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

const page = (results: (Disturbance & Awaited<ReturnType<typeof compare>>)[]): Page => ({
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
  ],
  figures: results,
})
