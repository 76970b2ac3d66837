import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Comparison, Page } from '../harness/comparison.ts'
import type { GatewayFileSettings } from '../harness/gateway-file.ts'
import type { Load, LoadResult, Protocol } from '../harness/load-generator.ts'
import type { Settings } from '../harness/measure.ts'
import { type BenchProcess, support, underTest } from '../harness/process.ts'
import type { Server, Stage } from '../harness/stage.ts'
import { request } from './gateway.ts'
import { gatewayWorld, selfSigned } from './gateway-edge.ts'

/**
 * Whether the gateway keeps anything: a million requests over kept-alive connections with 10 000 different tokens, and
 * clients that leave in the middle of what they ask or are told. Memory is read after a full collection; of several
 * processes what is resident, in all of them together.
 */
export const gatewayMemory: Comparison = {
  name: 'gateway-memory',
  title: 'Gateway, memory over a million requests',
  run: (stage, settings, progress) => run(stage, settings, progress),
}

/** With the default 8 rounds of 2 s; fewer in proportion. */
const allRequests = 1_000_000
const defaultSeconds = 16
const stages = 10
const distinctTokens = 10_000
/** Of what is held after the first two stages, when caches and pools are full. */
const mayGrow = 1.1

interface Held {
  requests: number
  left: number
  /** Undefined of several processes. */
  heapUsed: number | undefined
  rss: number
}

interface Measured {
  name: string
  held: Held[]
  /** Why it ended early. */
  failure: string | undefined
}

interface Variant {
  name: string
  protocol: Protocol
  server: Server
}

const run = async (stage: Stage, settings: Settings, progress: (line: string) => void): Promise<Page> => {
  const { upstreams, settings: file, sign } = await gatewayWorld(stage)
  const certificate = await selfSigned(stage)
  const ours = (extra: Partial<GatewayFileSettings> = {}) =>
    stage.serve(new URL('../targets/gateway.ts', import.meta.url), underTest, { ...file, ...extra })
  const overTls = await ours({ certificate })
  const processes = new URL('../targets/gateway-process.ts', import.meta.url)
  const variants: Variant[] = [
    { name: 'one target', protocol: 'http', server: await ours() },
    { name: 'three targets, checked', protocol: 'http', server: await ours({ targets: upstreams }) },
    { name: 'TLS', protocol: 'https', server: overTls },
    { name: 'HTTP/2', protocol: 'h2', server: overTls },
    { name: 'two workers', protocol: 'http', server: await stage.serve(processes, underTest, { ...file, workers: 2 }) },
  ]
  const { process: generator } = await stage.start(new URL('../harness/load-generator.ts', import.meta.url), support)
  const tokens = await Promise.all(Array.from({ length: distinctTokens }, sign))
  const share = Math.min(1, (settings.rounds * settings.seconds) / defaultSeconds)
  const measured: Measured[] = []
  for (const variant of variants) {
    const held: Held[] = []
    // It takes the better part of an hour: what one of them does wrong is told beside what the others did.
    const failure = await fill({
      ...{ variant, generator, tokens, connections: settings.connections, held },
      perStage: Math.ceil((allRequests * share) / stages),
      progress: (line) => progress(`${variant.name}: ${line}`),
    }).then(
      () => undefined,
      (error: Error) => error.message,
    )
    measured.push({ name: variant.name, held, failure })
  }
  progress('')
  return page(measured)
}

const fill = async (options: {
  variant: Variant
  generator: BenchProcess
  tokens: readonly string[]
  perStage: number
  connections: number
  /** A row of each stage is added. */
  held: Held[]
  progress: (line: string) => void
}): Promise<void> => {
  const { variant, generator, tokens, perStage, connections, held, progress } = options
  const { protocol, server } = variant
  const { port, process: gateway } = server
  const requests = tokens.map((token) => request({ method: 'GET', port, token }))
  const impatient = request({ method: 'POST', port, body: 'x'.repeat(2_048), token: tokens[0]! })
  let [done, left] = [0, 0]
  for (let number = 1; number <= stages; number++) {
    progress(`stage ${number}/${stages}`)
    const wanted = done + perStage
    while (done < wanted) {
      const leaving = leaveInTheMiddle(port, protocol, impatient)
      const load: Load = {
        ...{ port, protocol, connections, seconds: 1, requests, once: false },
        expected: { status: 200, bodyIncludes: '"sku-9"' },
      }
      try {
        done += (await generator.call<LoadResult>('run', load)).requests
      } finally {
        // Else it would go on for good where the load fails.
        left += await leaving.stop()
      }
    }
    held.push({ requests: done, left, ...(await gateway.call<Pick<Held, 'rss' | 'heapUsed'>>('memory')) })
  }
}

/** Opens connections, sends a part or all of a request, and goes: before, within and after the answer. */
const leaveInTheMiddle = (port: number, protocol: Protocol, text: string) => {
  let [count, stopping] = [0, false]
  const one = async (): Promise<void> => {
    while (!stopping) {
      const length = count % 3 === 0 ? Math.floor(text.length / 2) : text.length
      const raw = connect(port, '127.0.0.1')
      // Over HTTP/2 these are no frames, which ends the connection as well.
      const socket: Socket =
        protocol === 'http'
          ? raw
          : connectTls({
              socket: raw,
              rejectUnauthorized: false,
              ALPNProtocols: [protocol === 'h2' ? 'h2' : 'http/1.1'],
            })
      for (const each of [raw, socket]) each.on('error', () => {})
      await new Promise<void>((resolve) => {
        socket.on(protocol === 'http' ? 'connect' : 'secureConnect', () =>
          socket.write(text.slice(0, length), () => setTimeout(resolve, count % 4)),
        )
        for (const each of [raw, socket]) each.on('close', () => resolve())
      })
      raw.resetAndDestroy()
      count++
    }
  }
  const all = Promise.all(Array.from({ length: 4 }, one))
  return {
    stop: async () => {
      stopping = true
      await all
      return count
    },
  }
}

const page = (measured: readonly Measured[]): Page => {
  const megabytes = (bytes: number | undefined) => (bytes === undefined ? '' : (bytes / 2 ** 20).toFixed(1))
  const growth = (held: readonly Held[], of: 'heapUsed' | 'rss') => (held.at(-1)![of] ?? 0) / (held[1]![of] ?? 1)
  const shown = (ratio: number) => `${ratio.toFixed(2)} ×`
  const rows = measured.map(({ name, held, failure }) => {
    const [early, last] = [held[1], held.at(-1)]
    if (failure !== undefined || !early || !last)
      return [name, String(last?.requests ?? 0), `aborted: ${failure}`, ...Array<string>(7).fill('')]
    const decisive = last.heapUsed === undefined ? 'rss' : 'heapUsed'
    return [
      ...[name, String(last.requests), String(last.left)],
      ...[megabytes(early.heapUsed), megabytes(last.heapUsed), megabytes(early.rss), megabytes(last.rss)],
      ...[last.heapUsed === undefined ? '' : shown(growth(held, 'heapUsed')), shown(growth(held, 'rss'))],
      growth(held, decisive) <= mayGrow && growth(held, 'rss') <= mayGrow ? 'met' : 'MISSED',
    ]
  })
  const head = [
    ...['gateway', 'requests', 'left early', 'heap MB after a fifth', 'at the end', 'resident MB after a fifth'],
    ...['at the end', 'heap', 'resident', `≤ ${mayGrow} ×`],
  ]
  return { tables: [[head, ...rows]], figures: measured }
}
