import { setTimeout as delay } from 'node:timers/promises'
import type { Comparison, Contestant, Prepared } from '../harness/comparison.ts'
import { support, underTest } from '../harness/process.ts'
import type { Server, Stage } from '../harness/stage.ts'
import { gatewayWorld } from './gateway-edge.ts'

/** What traces and metrics by OpenTelemetry cost a warm GET, with a collector that takes all it is sent. */
export const gatewayTelemetry: Comparison = {
  name: 'gateway-telemetry',
  title: 'Gateway, warm GET: traces of no request, of 1 % and of all',
  prepare: (stage) => prepare(stage),
}

const [bare, off, some, all] = ['bare undici proxy', 'off', '1 % sampled', 'all sampled'] as const

const prepare = async (stage: Stage): Promise<Prepared> => {
  const { settings, contestant } = await gatewayWorld(stage)
  const sink = await stage.serve(new URL('../peers/otlp-sink.ts', import.meta.url), support, {})
  const otlp = `http://127.0.0.1:${sink.port}`
  const gateway = (sample?: string): Promise<Server> =>
    stage.serve(new URL('../targets/gateway.ts', import.meta.url), underTest, {
      ...settings,
      ...(sample !== undefined && { telemetry: { otlp, sample } }),
    })
  const proxy = await stage.serve(new URL('../peers/bare-proxy.ts', import.meta.url), underTest, settings)
  const { preflight: _guardsNothing, ...floor } = contestant(bare, proxy)
  return {
    contestants: [
      floor,
      contestant(off, await gateway()),
      exporting(contestant(some, await gateway('1%')), sink),
      exporting(contestant(all, await gateway('100%')), sink),
    ],
    ratios: [
      { of: off, to: bare, atMost: 1.35 },
      { of: some, to: off, atMost: 1.1 },
      { of: all, to: off },
    ],
  }
}

/** Proves in each round that the collector gets traces while the round lasts. */
const exporting = (contestant: Contestant, sink: Server): Contestant => ({
  ...contestant,
  beside: async (seconds) => {
    const before = await sink.process.call<number>('exports')
    // Spans are sent once a second.
    await delay(Math.max(seconds * 1000 - 50, 1_500))
    if ((await sink.process.call<number>('exports')) === before)
      throw new Error(`${contestant.name}: nothing is traced`)
  },
})
