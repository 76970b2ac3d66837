import { compilePolicies, findOpa } from '../../policies/engine/index.ts'
import type { Comparison, Page } from '../harness/comparison.ts'
import { type Settings, type Spread, spread } from '../harness/measure.ts'
import { type BenchProcess, underTest } from '../harness/process.ts'
import { range } from '../harness/report.ts'
import type { Stage } from '../harness/stage.ts'
import type { Ended, EngineName } from '../targets/policy-engines.ts'

/**
 * `surrogate/policy-engine` beside `@open-policy-agent/opa-wasm`, OPA's own package for JavaScript: the same bundle, each
 * in a process of its own, in turn.
 */
export const policyEngines: Comparison = {
  name: 'policy-engines',
  title: 'Policy engines: the same rules, evaluated by surrogate/policy-engine and by @open-policy-agent/opa-wasm',
  run: async (stage, settings, progress) => {
    const engines = await prepare(stage)
    const decisions = []
    for (const decision of decisionsToMeasure) {
      progress(decision.name)
      decisions.push({ name: decision.name, micros: await timesOf(engines, decision, settings) })
    }
    progress('bounds')
    const bounds = []
    for (const engine of engines) bounds.push({ engine: engine.name, ...(await boundsOf(engine)) })
    return page(decisions, bounds)
  },
}

const names = ['opa-wasm', 'without memory of answers', 'surrogate'] as const satisfies readonly EngineName[]
const titles: Record<EngineName, string> = {
  'opa-wasm': 'opa-wasm',
  'without memory of answers': 'Surrogate, no memory of answers',
  surrogate: 'Surrogate',
}

const rules = `package bench

# METADATA
# entrypoint: true
scopes := {"allow": true} if count({s | some s in input.route.scopes; not s in input.token.scopes}) == 0

# METADATA
# entrypoint: true
comprehension := count([x | some x in input.list; x.size > 3; startswith(x.name, "na")])

# METADATA
# entrypoint: true
patterns := count([x | some x in input.list; regex.match("^/orders/[0-9]+/(items|refunds)/[a-z]*$", x.path)])

# METADATA
# entrypoint: true
triple := count([1 | some a in input.numbers; some b in input.numbers; some c in input.numbers; a + b + c == -1])

# METADATA
# entrypoint: true
contradiction := n if some n in input.numbers

# METADATA
# entrypoint: true
exact := sprintf("%d %v %v", [12345678901234567890, {"b", "a"}, 0.1])
`

const list = Array.from({ length: 200 }, (_, n) => ({ size: n % 7, name: `name${n}`, path: `/orders/${n}/items/abc` }))
const numbers = Array.from({ length: 100 }, (_, n) => n)
const scopes = { route: { scopes: ['read', 'write'] }, token: { scopes: ['openid', 'read', 'profile', 'write'] } }

const decisionsToMeasure = [
  { name: 'scopes of a route', entrypoint: 'bench/scopes', input: scopes },
  { name: 'a comprehension over 200 objects', entrypoint: 'bench/comprehension', input: { list } },
  { name: 'a regular expression over 200 paths', entrypoint: 'bench/patterns', input: { list } },
]

/** What OPA itself answers. */
const exactly = '12345678901234567890 {"a", "b"} 0.1'

type Engine = { name: EngineName; process: BenchProcess; before: number }

const prepare = async (stage: Stage): Promise<Engine[]> => {
  const sources = new Map([['bench.rego', new TextEncoder().encode(rules)]])
  const bundle = Buffer.from(await compilePolicies({ sources, opa: await findOpa() })).toString('base64')
  const file = new URL('../targets/policy-engines.ts', import.meta.url)
  const engines: Engine[] = []
  for (const name of names) {
    const { process } = await stage.start(file, underTest)
    const before = await residentOf(process)
    await process.call('load', { engine: name, bundle })
    engines.push({ name, process, before })
  }
  return engines
}

/** Bytes. */
const residentOf = async (process: BenchProcess): Promise<number> => (await process.call<{ rss: number }>('memory')).rss

const warmUpMs = 2_000

const timesOf = async (
  engines: readonly Engine[],
  { entrypoint, input }: (typeof decisionsToMeasure)[number],
  { rounds, seconds }: Settings,
): Promise<Spread[]> => {
  const decide = ({ process }: Engine, ms: number) => process.call<number>('decide', { entrypoint, input, ms })
  for (const engine of engines) await decide(engine, warmUpMs)
  const times = engines.map((): number[] => [])
  for (let round = 0; round < rounds; round++) {
    for (const [index, engine] of engines.entries()) times[index]!.push(await decide(engine, 1_000 * seconds))
  }
  return times.map(spread)
}

const mostThrows = 5_000

const boundsOf = async ({ name, process, before }: Engine) => {
  const ask = (entrypoint: string, input: unknown) => process.call<Ended>('ask', { entrypoint, input })
  const decided = await residentOf(process)
  const costly = await ask('bench/triple', { numbers })
  const afterwards = await residentOf(process)
  const exact = await ask('bench/exact', {})
  const broken = await process.call<{ count: number; error: string } | undefined>('throwsUntilBroken', {
    throwing: { entrypoint: 'bench/contradiction', input: { numbers } },
    next: { entrypoint: 'bench/scopes', input: scopes },
    most: mostThrows,
  })
  const functions = await process.call<number>('functions', name)
  return { before, decided, costly, afterwards, exact, broken, functions }
}

const megabytes = (bytes: number): string => `${Math.round(bytes / 1_048_576)} MB`

const page = (
  decisions: { name: string; micros: Spread[] }[],
  bounds: ({ engine: EngineName } & Awaited<ReturnType<typeof boundsOf>>)[],
): Page => {
  const rowOf = (name: string, value: (bound: (typeof bounds)[number]) => string) => [name, ...bounds.map(value)]
  return {
    tables: [
      [
        ['a decision, µs of processor time', ...names.map((name) => titles[name])],
        ...decisions.map(({ name, micros }) => [name, ...micros.map((times) => range(times, 2))]),
      ],
      [
        ['', ...names.map((name) => titles[name])],
        rowOf(
          `three nested loops over ${numbers.length} numbers`,
          ({ costly: { outcome, ms } }) => `${outcome} after ${ms.toFixed(0)} ms`,
        ),
        rowOf('memory for the policy after the decisions above', ({ before, decided }) => megabytes(decided - before)),
        rowOf('after the nested loops', ({ before, afterwards }) => megabytes(afterwards - before)),
        rowOf(
          `rules that contradict each other, up to ${mostThrows} times, each followed by a decision`,
          ({ broken }) =>
            broken ? `after ${broken.count} the decision fails: ${broken.error}` : 'every decision right',
        ),
        rowOf('`sprintf` of 12345678901234567890, a set and 0.1', ({ exact: { answer, error } }) =>
          answer === exactly ? 'as OPA' : `\`${answer ?? error}\``,
        ),
        rowOf('functions supplied beside those in WebAssembly', ({ functions }) => String(functions)),
      ],
    ],
    figures: { decisions, bounds },
  }
}
