import { compilePolicies, findOpa, prepareEngine, readBundle } from '../../policies/engine/index.ts'
import { createRunner, type PreparedEngine, type Run } from '../../policies/engine/instance/runner.ts'
import { sectionsOf, withSections } from '../../policies/engine/wasm/binary.ts'
import { metered } from '../../policies/engine/wasm/meter.ts'
import type { Comparison } from '../harness/comparison.ts'
import { spread } from '../harness/measure.ts'
import { range } from '../harness/report.ts'

/**
 * What counting work costs: decisions of a metered module beside those of the same module with its instructions as they
 * were, in turn and in one process. An answer from memory evaluates nothing, so it costs nothing there.
 */
export const policyUnits: Comparison = {
  name: 'policy-units',
  title: 'Policies: the cost of counting work',
  run: async (_stage, { rounds }, progress) => {
    const results = []
    for (const rule of rulesToMeasure) {
      progress(rule.name)
      results.push({ ...rule, ...(await compare(rule, rounds)) })
    }
    return {
      tables: [
        [
          ['rule', 'units', 'not counted, µs', 'counted, µs', 'ratio', 'bar', ''],
          ...results.map(({ name, units, plain, counted, ratio, atMost }) => [
            name,
            String(units),
            range(plain, 2),
            range(counted, 2),
            range(ratio, 2),
            `≤ ${atMost}`,
            ratio.median <= atMost ? 'met' : 'MISSED',
          ]),
        ],
      ],
      figures: { results },
    }
  },
}

const list = Array.from({ length: 200 }, (_, n) => ({ size: n % 7, name: `name${n}`, path: `/orders/${n}/items/abc` }))

const rulesToMeasure = [
  {
    name: 'scopes of a route',
    atMost: 1.15,
    rule: `decision := {"allow": true} if count({s | some s in input.route.scopes; not s in input.token.scopes}) == 0`,
    input: { route: { scopes: ['read', 'write'] }, token: { scopes: ['openid', 'read', 'profile', 'write'] } },
  },
  {
    name: 'a comprehension over 200 objects',
    atMost: 1.15,
    rule: 'decision := count([x | some x in input.list; x.size > 3; startswith(x.name, "na")])',
    input: { list },
  },
  {
    name: 'a regular expression over 200 paths',
    atMost: 1.2,
    rule: 'decision := count([x | some x in input.list; regex.match("^/orders/[0-9]+/(items|refunds)/[a-z]*$", x.path)])',
    input: { list },
  },
]
type MeasuredRule = (typeof rulesToMeasure)[number]

const warmUp = 3_000
/** Of one batch, ms: short, so that what else the machine does hits both alike. */
const batchMs = 10
const batchesOfRound = 20

const compare = async ({ rule, input }: MeasuredRule, rounds: number) => {
  const text = `package bench\n\n# METADATA\n# entrypoint: true\n${rule}\n`
  const sources = new Map([['bench.rego', new TextEncoder().encode(text)]])
  const bundle = readBundle(await compilePolicies({ sources, opa: await findOpa() }))
  const prepared = prepareEngine(bundle)
  const evaluate = (run: Run): number =>
    run((instance) => {
      instance.evaluate(0, json)
      return instance.unitsTaken()
    })
  const json = JSON.stringify(input)
  const contestants = [runnerOf({ ...prepared, module: uncounted(bundle.wasm) }), runnerOf(prepared)] as const
  const units = evaluate(contestants[1])

  /** µs of processor time for one. */
  const batch = (run: Run, ms = batchMs): number => {
    const until = performance.now() + ms
    const before = process.cpuUsage()
    let count = 0
    for (; performance.now() < until; count++) evaluate(run)
    const { user, system } = process.cpuUsage(before)
    return (user + system) / count
  }
  for (const run of contestants) batch(run, warmUp)
  const median = (values: number[]) => spread(values).median
  const [plain, counted]: [number[], number[]] = [[], []]
  for (let round = 0; round < rounds; round++) {
    const pairs = Array.from({ length: batchesOfRound }, () => contestants.map((run) => batch(run)) as [number, number])
    plain.push(median(pairs.map(([first]) => first)))
    counted.push(median(pairs.map(([, second]) => second)))
  }
  return {
    units,
    plain: spread(plain),
    counted: spread(counted),
    ratio: spread(counted.map((value, round) => value / plain[round]!)),
  }
}

const runnerOf = (prepared: PreparedEngine): Run => createRunner(prepared, { builtins: {} })

/** The module with everything that the meter adds but its instructions. */
const uncounted = (wasm: Uint8Array<ArrayBuffer>): WebAssembly.Module => {
  const code = sectionsOf(wasm).find(({ name }) => name === 'code')!
  return new WebAssembly.Module(withSections(metered(wasm), { code: wasm.subarray(code.start, code.end) }))
}
