import { writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { programArguments } from '../test/support/program-arguments.ts'
import { broker } from './comparisons/broker.ts'
import { claims } from './comparisons/claims.ts'
import { adminConsole } from './comparisons/console.ts'
import { consoleTail } from './comparisons/console-tail.ts'
import { eventCost } from './comparisons/event-cost.ts'
import { forwardAuth } from './comparisons/forward-auth.ts'
import { gatewayGet, gatewayPost } from './comparisons/gateway.ts'
import { gatewayCold } from './comparisons/gateway-cold.ts'
import { gatewayDpop } from './comparisons/gateway-dpop.ts'
import { gatewayEdge, gatewayTls } from './comparisons/gateway-edge.ts'
import { gatewayFlood } from './comparisons/gateway-flood.ts'
import { gatewayMemory, gatewayMemoryWorkers } from './comparisons/gateway-memory.ts'
import { gatewayTelemetry } from './comparisons/gateway-telemetry.ts'
import { hostFunctions } from './comparisons/host-functions.ts'
import { issuer, issuerFew } from './comparisons/issuer.ts'
import { management } from './comparisons/management.ts'
import { opaServer } from './comparisons/opa-server.ts'
import { people } from './comparisons/people.ts'
import { policies, policiesBusy } from './comparisons/policies.ts'
import { policyEngines } from './comparisons/policy-engines.ts'
import { policyServe } from './comparisons/policy-serve.ts'
import { policyUnits } from './comparisons/policy-units.ts'
import { relay } from './comparisons/relay.ts'
import { routes } from './comparisons/routes.ts'
import { scale } from './comparisons/scale.ts'
import { signIn } from './comparisons/sign-in.ts'
import { signInBurst } from './comparisons/sign-in-burst.ts'
import type { Comparison, Page } from './harness/comparison.ts'
import { measure, type Settings } from './harness/measure.ts'
import { canPin, support } from './harness/process.ts'
import { conditions, markdownReport, preamble, report, tablesOf } from './harness/report.ts'
import { writeResults } from './harness/results-page.ts'
import { createStage } from './harness/stage.ts'

/** `npm run bench -- [name…] [--rounds 8] [--seconds 2] [--connections 16] [--json file] [--write]`; see README.md. */
const comparisons: Comparison[] = [
  gatewayGet,
  gatewayPost,
  gatewayCold,
  gatewayDpop,
  gatewayEdge,
  gatewayTls,
  gatewayTelemetry,
  gatewayFlood,
  gatewayMemory,
  gatewayMemoryWorkers,
  forwardAuth,
  opaServer,
  policyServe,
  issuer,
  issuerFew,
  signIn,
  signInBurst,
  people,
  scale,
  management,
  adminConsole,
  consoleTail,
  claims,
  eventCost,
  policies,
  policiesBusy,
  policyEngines,
  policyUnits,
  hostFunctions,
  relay,
  routes,
  broker,
]

const names = comparisons.map(({ name }) => name)
const { values, positionals, misuse } = programArguments(
  `npm run bench -- [${names.join(' | ')}] [--rounds 8] [--seconds 2] [--connections 16] [--json file] [--write]`,
  {
    rounds: { type: 'string', default: '8' },
    seconds: { type: 'string', default: '2' },
    connections: { type: 'string' },
    json: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
  { positionals: true },
)

const positive = (name: 'rounds' | 'seconds' | 'connections'): number => {
  const value = Number(values[name])
  if (value > 0 && (name === 'seconds' || Number.isInteger(value))) return value
  return misuse(`--${name} takes a positive number, not "${values[name]}"`)
}

const chosen = (wanted: string[]): Comparison[] => {
  const unknown = wanted.find((name) => !names.includes(name))
  if (unknown !== undefined) misuse(`there is no comparison "${unknown}"`)
  return wanted.length === 0 ? comparisons : comparisons.filter(({ name }) => wanted.includes(name))
}

const selected = chosen(positionals)
const given = { rounds: positive('rounds'), seconds: positive('seconds') }
const connections = values.connections === undefined ? undefined : positive('connections')
const settingsOf = (comparison: Comparison): Settings => ({
  ...given,
  connections: comparison.fixedConnections ?? connections ?? comparison.connections ?? 16,
})

/** One line, rewritten, and only where a person looks at it. */
const progress = (line: string): void => {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${line}`)
}

const run = async (comparison: Comparison, settings: Settings): Promise<Page> => {
  const stage = createStage()
  try {
    if ('run' in comparison) return await comparison.run(stage, settings, progress)
    const prepared = await comparison.prepare(stage)
    const { process: generator } = await stage.start(new URL('./harness/load-generator.ts', import.meta.url), support)
    const measured = await measure({ prepared, generator, progress, ...settings })
    return { tables: tablesOf(measured), figures: measured }
  } finally {
    await stage.stop()
  }
}

// Inherited by every server under test; express and others are slower without it.
process.env['NODE_ENV'] = 'production'

console.log(preamble(canPin))
const results: Record<string, unknown> = {}
for (const comparison of selected) {
  try {
    const settings = settingsOf(comparison)
    const { tables, figures } = await run(comparison, settings)
    progress('')
    console.log(report(comparison.title, settings, tables))
    results[comparison.name] = { settings, figures }
    if (values.write) {
      await writeResults(comparison.name, `${markdownReport(tables)}\n\n${conditions(settings)}.`)
    }
  } catch (error) {
    console.error(`\n${comparison.title}\n  aborted: ${error instanceof Error ? error.message : error}`)
    process.exitCode = 1
  }
}
const machine = { node: process.version, cpu: cpus()[0]?.model, pinned: canPin }
if (values.json) await writeFile(values.json, `${JSON.stringify({ machine, results }, null, 2)}\n`)
