import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Comparison, Page } from '../harness/comparison.ts'
import type { GatewayFileSettings } from '../harness/gateway-file.ts'
import type { Load, LoadResult, Protocol } from '../harness/load-generator.ts'
import { type Settings, type Spread, spread } from '../harness/measure.ts'
import { type BenchProcess, support, underTest } from '../harness/process.ts'
import type { Server, Stage } from '../harness/stage.ts'
import { request } from './gateway.ts'
import { gatewayWorld, selfSigned } from './gateway-edge.ts'

/**
 * Whether the gateway keeps anything: a million requests over kept-alive connections with 10 000 different tokens, and
 * clients that leave in the middle of what they ask or are told. Memory is read after a full collection.
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
  heapUsed: number
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
  const variants: Variant[] = [
    { name: 'one target', protocol: 'http', server: await ours() },
    { name: 'three targets, checked', protocol: 'http', server: await ours({ targets: upstreams }) },
    { name: 'TLS', protocol: 'https', server: overTls },
    { name: 'HTTP/2', protocol: 'h2', server: overTls },
  ]
  const { generator, tokens, perStage } = await prepareLoad(stage, settings, sign)
  const measured: Measured[] = []
  for (const { name, protocol, server } of variants) {
    const held: Held[] = []
    const load = createLoad({ ...{ protocol, server, generator, tokens }, connections: settings.connections })
    // It takes the better part of an hour: what one of them does wrong is told beside what the others did.
    const failure = await fill(load, server, { perStage, held, progress: (line) => progress(`${name}: ${line}`) }).then(
      () => undefined,
      (error: Error) => error.message,
    )
    measured.push({ name, held, failure })
  }
  progress('')
  return page(measured)
}

const fill = async (
  load: MemoryLoad,
  { process: gateway }: Server,
  { perStage, held, progress }: { perStage: number; held: Held[]; progress: (line: string) => void },
): Promise<void> => {
  for (let number = 1; number <= stages; number++) {
    progress(`stage ${number}/${stages}`)
    await load.until(number * perStage)
    const { requests, left } = load
    held.push({ requests, left, ...(await gateway.call<Pick<Held, 'rss' | 'heapUsed'>>('memory')) })
  }
}

/**
 * The same of two workers. Nobody collects in them but V8 itself, when it likes: the least that is resident in the second
 * half is held against the least in the first, after the tenth in which caches and pools fill.
 */
export const gatewayMemoryWorkers: Comparison = {
  name: 'gateway-memory-workers',
  title: 'Gateway with two workers, memory over a million requests',
  async run(stage, settings, progress) {
    const { settings: file, sign } = await gatewayWorld(stage)
    const processes = new URL('../targets/gateway-process.ts', import.meta.url)
    const server = await stage.serve(processes, underTest, { ...file, workers: 2 })
    const { generator, tokens, perStage } = await prepareLoad(stage, settings, sign)
    const load = createLoad({ protocol: 'http', ...{ server, generator, tokens }, connections: settings.connections })
    const resident: { requests: number; rss: number }[] = []
    await load.until(stages * perStage, async () => {
      progress(`${load.requests} requests`)
      const { rss } = await server.process.call<{ rss: number }>('memory')
      resident.push({ requests: load.requests, rss })
    })
    progress('')
    const between = (from: number, to: number) =>
      spread(
        resident
          .filter(({ requests }) => requests > from * perStage && requests <= to * perStage)
          .map(({ rss }) => rss),
      )
    const [first, second] = [between(1, stages / 2), between(stages / 2, Number.POSITIVE_INFINITY)]
    const growth = second.low / first.low
    const row = (name: string, { low, high }: Spread) => [name, megabytes(low), megabytes(high)]
    return {
      tables: [
        [
          ['resident in all processes, two workers', 'least MB', 'most MB', `≤ ${mayGrow} ×`, ''],
          [...row('first half, after a tenth', first), '', ''],
          [...row('second half', second), shown(growth), growth <= mayGrow ? 'met' : 'MISSED'],
        ],
        [
          ['requests', 'left early'],
          [String(load.requests), String(load.left)],
        ],
      ],
      figures: { resident, left: load.left },
    }
  },
}

const prepareLoad = async (stage: Stage, settings: Settings, sign: () => Promise<string>) => {
  const { process: generator } = await stage.start(new URL('../harness/load-generator.ts', import.meta.url), support)
  const tokens = await Promise.all(Array.from({ length: distinctTokens }, sign))
  const share = Math.min(1, (settings.rounds * settings.seconds) / defaultSeconds)
  return { generator, tokens, perStage: Math.ceil((allRequests * share) / stages) }
}

interface MemoryLoad {
  /** Answered so far. */
  readonly requests: number
  /** Connections that were broken off so far. */
  readonly left: number
  /** Until so many are answered in all; `eachSecond` is asked after each second of it. */
  until(requests: number, eachSecond?: () => Promise<void>): Promise<void>
}

const createLoad = (options: {
  protocol: Protocol
  server: Server
  generator: BenchProcess
  tokens: readonly string[]
  connections: number
}): MemoryLoad => {
  const { protocol, server, generator, tokens, connections } = options
  const { port } = server
  const load: Load = {
    ...{ port, protocol, connections, seconds: 1, once: false },
    requests: tokens.map((token) => request({ method: 'GET', port, token })),
    expected: { status: 200, bodyIncludes: '"sku-9"' },
  }
  const impatient = request({ method: 'POST', port, body: 'x'.repeat(2_048), token: tokens[0]! })
  let [requests, left] = [0, 0]
  return {
    get requests() {
      return requests
    },
    get left() {
      return left
    },
    async until(wanted, eachSecond = async () => {}) {
      while (requests < wanted) {
        const leaving = leaveInTheMiddle(port, protocol, impatient)
        try {
          requests += (await generator.call<LoadResult>('run', load)).requests
        } finally {
          // Else it would go on for good where the load fails.
          left += await leaving.stop()
        }
        await eachSecond()
      }
    },
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

const megabytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(1)
const shown = (ratio: number): string => `${ratio.toFixed(2)} ×`

const page = (measured: readonly Measured[]): Page => {
  const rows = measured.map(({ name, held, failure }) => {
    const [early, last] = [held[1], held.at(-1)]
    if (failure !== undefined || !early || !last)
      return [name, String(last?.requests ?? 0), `aborted: ${failure}`, ...Array<string>(7).fill('')]
    const [heap, resident] = [last.heapUsed / early.heapUsed, last.rss / early.rss]
    return [
      ...[name, String(last.requests), String(last.left)],
      ...[early.heapUsed, last.heapUsed, early.rss, last.rss].map(megabytes),
      ...[shown(heap), shown(resident), Math.max(heap, resident) <= mayGrow ? 'met' : 'MISSED'],
    ]
  })
  const head = [
    ...['gateway', 'requests', 'left early', 'heap MB after a fifth', 'at the end', 'resident MB after a fifth'],
    ...['at the end', 'heap', 'resident', `≤ ${mayGrow} ×`],
  ]
  return { tables: [[head, ...rows]], figures: measured }
}
