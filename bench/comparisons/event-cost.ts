import type { Comparison, Page } from '../harness/comparison.ts'
import type { LoadResult } from '../harness/load-generator.ts'
import { type Settings, spread } from '../harness/measure.ts'
import { support, underTest } from '../harness/process.ts'
import { range } from '../harness/report.ts'
import type { EventCostSettings, Transactions } from '../targets/event-cost.ts'
import { changingIssuer } from './broker.ts'
import { startPostgres } from './issuer.ts'

/**
 * What recording its event costs a change: the same transaction with the event and without, and, against that, the
 * whole change over HTTP, with the token verified. One caller at a time. The bar: less than a tenth.
 */
export const eventCost: Comparison = {
  name: 'event-cost',
  fixedConnections: 1,
  title: 'What its event costs a change by the Management API',
  run: async (stage, settings, progress) => {
    const { contestant, connection } = await changingIssuer(stage, await startPostgres(stage), 'changes', undefined)
    await contestant.preflight?.()
    const target = new URL('../targets/event-cost.ts', import.meta.url)
    const world: EventCostSettings = { connection }
    const { process: transactions } = await stage.start(target, underTest, world)
    const { process: generator } = await stage.start(new URL('../harness/load-generator.ts', import.meta.url), support)
    const round = async (): Promise<Round> => {
      const { withEvent, without } = await transactions.call<Transactions>('run', perRound(settings))
      const whole = await generator.call<LoadResult>('run', {
        port: contestant.server.port,
        connections: settings.connections,
        seconds: settings.seconds,
        requests: await contestant.requests(perRound(settings) * 4),
        once: true,
        expected: contestant.expected,
      })
      const event = median(withEvent) - median(without)
      return { transaction: median(without), event, whole: whole.p50Ms, share: event / whole.p50Ms }
    }
    progress('warm-up')
    await round()
    const rounds: Round[] = []
    for (let number = 1; number <= settings.rounds; number += 1) {
      progress(`round ${number}/${settings.rounds}`)
      rounds.push(await round())
    }
    return page(rounds)
  },
}

type Round = { transaction: number; event: number; whole: number; share: number }

const perRound = ({ seconds }: Settings): number => Math.ceil(seconds * 250)

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN

const most = 0.1

const page = (rounds: Round[]): Page => {
  const of = (pick: (round: Round) => number) => spread(rounds.map(pick))
  const share = of((round) => round.share)
  return {
    tables: [
      [
        ['', 'ms', 'bar', ''],
        [
          'the transaction without the event',
          range(
            of(({ transaction }) => transaction),
            2,
          ),
          '',
          '',
        ],
        [
          'what the event adds to it',
          range(
            of(({ event }) => event),
            3,
          ),
          '',
          '',
        ],
        [
          'the whole change over HTTP',
          range(
            of(({ whole }) => whole),
            2,
          ),
          '',
          '',
        ],
        [
          'of that, the event',
          `${range({ median: share.median * 100, low: share.low * 100, high: share.high * 100 }, 1)} %`,
          '< 10 %',
          share.median < most ? 'met' : 'MISSED',
        ],
      ],
    ],
    figures: rounds,
  }
}
