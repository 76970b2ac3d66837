import { execFileSync } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import type { CDPSession, Page as Tab } from 'playwright-core'
import { migrations } from '../../migrations/index.ts'
import { createDatabase, migrate } from '../../platform/database/database.ts'
import { silentLogger } from '../../platform/logger.ts'
import { shippedPolicies } from '../../policies/policy-set.ts'
import { chromium } from '../../test/support/chromium.ts'
import { freePort } from '../../test/support/free-port.ts'
import type { Comparison, Page } from '../harness/comparison.ts'
import { addDatabase } from '../harness/database-store.ts'
import type { Settings } from '../harness/measure.ts'
import { percentile } from '../harness/percentiles.ts'
import { canPin, everywhere, support, underTest } from '../harness/process.ts'
import type { Stage } from '../harness/stage.ts'
import type { Phases, Steady } from '../harness/steady-load.ts'
import { type ConsoleWorld, startConsoleWorld } from './console-world.ts'
import { request } from './gateway.ts'
import { gatewayWorld } from './gateway-edge.ts'
import { startPostgres } from './issuer.ts'

/**
 * The page Live beside a gateway with 200 requests a second: how often it paints, whether it keeps anything, what the
 * gateway's other callers notice of it, and how long it takes from a denied request to the page that says why.
 */
export const consoleTail: Comparison = {
  name: 'console-tail',
  title: 'The console in Chromium, beside a gateway with 200 requests a second',
  fixedConnections: 1,
  run: async (stage, settings, progress) => {
    if (chromium === undefined) return { tables: [[['not measured'], ['there is no Chromium here']]], figures: [] }
    return measure(stage, settings, progress)
  },
}

const perSecond = 200
const audience = 'https://gateway.bench.test/inspection'
const bars = { paints: 10, heap: 1.1, whyMs: 1_000 }

interface World {
  console: ConsoleWorld
  gatewayPort: number
  denied: string
  load: Steady
}

const start = async (stage: Stage): Promise<World> => {
  const { settings, sign } = await gatewayWorld(stage)
  const inspectionPort = await freePort()
  const gateways = [{ name: 'edge', url: `http://127.0.0.1:${inspectionPort}`, audience }]
  const connection = await addDatabase(await startPostgres(stage), 'bench_console_tail')
  const database = createDatabase({ connection, logger: silentLogger })
  await migrate(database, migrations)
  await database.close()
  // The gateway has a processor of its own, as it is on another machine than who looks at it.
  const release = pinOwn()
  const world = await startConsoleWorld(stage, connection, { gateways, cpu: support })
  release()
  const issuer = await issuerOf(world)
  const gateway = await stage.serve(new URL('../targets/gateway.ts', import.meta.url), underTest, {
    ...settings,
    policyFolder: shippedPolicies,
    inspection: { port: inspectionPort, audience, issuer },
  })
  const { port } = gateway
  const bytes = request({ method: 'GET', port, token: await sign() })
  return {
    console: world,
    gatewayPort: port,
    denied: await sign('read:nothing'),
    load: { port, perSecond, request: bytes, bodyIncludes: '"sku-9"' },
  }
}

const measure = async (
  stage: Stage,
  { rounds, seconds }: Settings,
  progress: (line: string) => void,
): Promise<Page> => {
  const world = await start(stage)
  const { process: steady } = await stage.start(new URL('../harness/steady-load.ts', import.meta.url), support)
  const tab = await world.console.open()
  const session = await tab.context().newCDPSession(tab)

  progress('from a denied request to why')
  const why: number[] = []
  for (let round = 0; round < rounds + 1; round++) why.push(await denyAndAsk(world, tab))
  // The first one compiles.
  why.shift()

  await tab.goto(`${world.console.url}/keys`)
  await steady.call('phase', 'warm-up')
  await steady.call('begin', world.load)
  await openLive(tab)
  await delay(5_000)
  await openOther(tab)
  for (let round = 0; round < rounds; round++) {
    progress(`latency ${round + 1} of ${rounds}`)
    await steady.call('phase', `closed ${round}`)
    await delay(seconds * 1_000)
    await steady.call('phase', 'opening')
    await openLive(tab)
    await steady.call('phase', `open ${round}`)
    await delay(seconds * 1_000)
    await steady.call('phase', 'closing')
    await openOther(tab)
  }

  await openLive(tab)
  await steady.call('phase', 'tail')
  const samples: Sample[] = []
  for (let round = 0; round < rounds; round++) {
    progress(`tail ${round + 1} of ${rounds}`)
    samples.push(await sample(tab, session, seconds))
  }
  const rows = await tab.locator('ol[aria-label=Requests] > li').count()
  const phases = await steady.call<Phases>('end')
  const failures = Object.values(phases).flatMap((phase) => phase.failures)
  if (failures.length > 0) throw new Error(`${failures.length} requests failed: ${failures[0]}`)
  const p99 = (name: string) =>
    Array.from({ length: rounds }, (_, round) => percentile(phases[`${name} ${round}`]?.latencies ?? [], 0.99))
  return report({ why, closed: p99('closed'), open: p99('open'), samples, rows, seconds: rounds * seconds })
}

/** From the answer that says no until its page is painted. In ms. */
const denyAndAsk = async ({ console: { url }, gatewayPort, denied }: World, tab: Tab): Promise<number> => {
  const answer = await fetch(`http://127.0.0.1:${gatewayPort}/orders/1`, {
    headers: { authorization: `Bearer ${denied}` },
  })
  const { instance } = (await answer.json()) as { instance: string }
  const begun = performance.now()
  await tab.goto(`${url}/why/${instance}`, { waitUntil: 'commit' })
  await tab.getByText('The token lacks read:orders').waitFor()
  await tab.getByText('stopped at line').first().waitFor()
  await tab.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
  return performance.now() - begun
}

const openLive = async (tab: Tab): Promise<void> => {
  await tab.getByRole('link', { name: 'Live', exact: true }).click()
  await tab.locator('ol[aria-label=Requests] > li').first().waitFor()
}

const openOther = async (tab: Tab): Promise<void> => {
  await tab.getByRole('link', { name: 'Keys', exact: true }).click()
  await tab.getByRole('heading', { name: 'Keys', level: 1 }).waitFor()
}

interface Sample {
  paintsPerSecond: number
  mostInASecond: number
  /** After a full collection. */
  heapBytes: number
}

/** Frames that the page has painted and handed to the compositor, as Chromium's own trace has them. */
const sample = async (tab: Tab, session: CDPSession, seconds: number): Promise<Sample> => {
  const browser = tab.context().browser()!
  await browser.startTracing(tab, { categories: ['devtools.timeline'] })
  await delay(seconds * 1_000)
  const trace = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: { name: string; ts: number }[] }
  // In seconds.
  const paints = trace.traceEvents
    .flatMap(({ name, ts }) => (name === 'Layerize' ? [ts / 1e6] : []))
    .sort((a, b) => a - b)
  const [first = 0, last = 0] = [paints[0], paints.at(-1)]
  if (last <= first) throw new Error('the page does not paint')
  const within = (from: number) => paints.filter((at) => at >= from && at < from + 1).length
  await session.send('HeapProfiler.collectGarbage')
  const { usedSize } = await session.send('Runtime.getHeapUsage')
  return {
    paintsPerSecond: (paints.length - 1) / (last - first),
    mostInASecond: Math.max(...paints.map(within)),
    heapBytes: usedSize,
  }
}

interface Figures {
  why: number[]
  closed: number[]
  open: number[]
  samples: Sample[]
  rows: number
  seconds: number
}

const median = (values: readonly number[]): number => percentile(values, 0.5)
const spread = (values: readonly number[], digits = 1): string =>
  `${median(values).toFixed(digits)} (${Math.min(...values).toFixed(digits)}–${Math.max(...values).toFixed(digits)})`

const report = (figures: Figures): Page => {
  const { why, closed, open, samples, rows, seconds } = figures
  const paints = samples.map(({ paintsPerSecond }) => paintsPerSecond)
  const most = Math.max(...samples.map(({ mostInASecond }) => mostInASecond))
  const heaps = samples.map(({ heapBytes }) => heapBytes / 1e6)
  // The first third fills what is kept.
  const third = Math.ceil(heaps.length / 3)
  const growth = median(heaps.slice(-third)) / median(heaps.slice(0, third))
  const noise = Math.max(...closed) / median(closed)
  const ratio = median(open) / median(closed)
  const verdict = (isMet: boolean) => (isMet ? 'met' : 'MISSED')
  return {
    tables: [
      [
        [`the page Live, open for ${seconds} s`, 'measured', 'bar', ''],
        ['paints/s', spread(paints), '', ''],
        ['most paints in one second', String(most), `≤ ${bars.paints}`, verdict(most <= bars.paints)],
        ['heap after collection, MB', spread(heaps), '', ''],
        ['last third to first third', growth.toFixed(3), `≤ ${bars.heap}`, verdict(growth <= bars.heap)],
        ['rows in the page', String(rows), '≤ 1 000', verdict(rows <= 1_000)],
      ],
      [
        ['p99 of the gateway, ms', 'measured', 'bar', ''],
        ['nobody looks', spread(closed, 2), '', ''],
        ['the page is open', spread(open, 2), '', ''],
        ['ratio of medians', ratio.toFixed(2), `noise: ≤ ${noise.toFixed(2)}`, verdict(ratio <= noise)],
      ],
      [
        ['from a denied request, ms', 'measured', 'bar', ''],
        ['to its page Why, painted', spread(why, 0), `≤ ${bars.whyMs}`, verdict(Math.max(...why) <= bars.whyMs)],
      ],
    ],
    figures,
  }
}

/** A browser inherits where this process runs. Returns what undoes it. */
const pinOwn = (): (() => void) => {
  if (!canPin) return () => {}
  const pin = (cpus: number | string) =>
    void execFileSync('taskset', ['-apc', String(cpus), String(process.pid)], { stdio: 'ignore' })
  pin(support)
  return () => pin(everywhere)
}

const issuerOf = async ({ url }: ConsoleWorld): Promise<string> => {
  const answer = await fetch(new URL('/oidc/.well-known/openid-configuration', url))
  return ((await answer.json()) as { issuer: string }).issuer
}
