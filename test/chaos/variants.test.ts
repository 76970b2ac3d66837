import { describe, type ExpectStatic, test } from 'vitest'
import { natsMissing } from '../support/nats.ts'
import { type ChaosOptions, runChaos } from './chaos.ts'
import { isGood } from './verdict.ts'

/**
 * The harness finds what is wrong with deliveries that lack one of the parts that make ours right. At the same time:
 * they mostly wait.
 */
describe.skipIf(natsMissing() !== undefined)(
  'the harness fails what is broken on purpose',
  { concurrent: true, timeout: 240_000 },
  () => {
    const run = async (expect: ExpectStatic, options: Partial<ChaosOptions>) => {
      const defaults = { events: 700, kills: 0, wipes: 0, stops: 0, minutes: 0.3, seed: 7, variant: 'none' } as const
      const report = await runChaos({ ...defaults, ...options })
      expect(report.deliveries).toBeGreaterThan(300)
      expect(isGood(report, 1)).toBe(false)
      return report
    }

    test('without the reconciler, what a wiped broker had confirmed is lost', async ({ expect }) => {
      // Many entities: a later event of the same one brings in what is lost of it.
      const { missing } = await run(expect, { variant: 'no-reconciler', wipes: 2, entities: 400 })
      expect(missing.length).toBeGreaterThan(0)
    })

    test('acknowledged before the commit, what a killed relay had in hand is lost', async ({ expect }) => {
      const { missing } = await run(expect, { variant: 'ack-first', kills: 5, targets: ['relay'] })
      expect(missing.length).toBeGreaterThan(0)
    })

    test('without lanes, a retry is overtaken by the next event of its entity', async ({ expect }) => {
      const { missing, outOfOrder } = await run(expect, { variant: 'no-lanes', minutes: 0.25, entities: 6 })
      expect(missing).toEqual([])
      expect(outOfOrder.length).toBeGreaterThan(0)
    })
  },
)
