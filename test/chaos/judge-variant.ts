import { type ChaosOptions, type ChaosReport, runChaos } from './chaos.ts'
import type { Variant } from './variants.ts'
import { isGood } from './verdict.ts'

export type BrokenVariant = Exclude<Variant, 'none'>

interface Expectation {
  /** What meets the weakness of the variant. */
  options: Partial<ChaosOptions>
  /** What the harness must find, beside that the whole is not good. */
  finds(report: ChaosReport): boolean
}

const expectations: Record<BrokenVariant, Expectation> = {
  // Many entities: a later event of the same one brings in what is lost of it.
  'no-reconciler': { options: { wipes: 2, entities: 400 }, finds: ({ missing }) => missing.length > 0 },
  'ack-first': { options: { kills: 5, targets: ['relay'] }, finds: ({ missing }) => missing.length > 0 },
  'no-lanes': {
    options: { minutes: 0.25, entities: 6 },
    finds: ({ missing, outOfOrder }) => missing.length === 0 && outOfOrder.length > 0,
  },
}

export const brokenVariants = Object.keys(expectations) as BrokenVariant[]

/** A short run of what is broken on purpose. `found`: the harness noticed what is wrong with it. */
export const judgeVariant = async (variant: BrokenVariant): Promise<{ found: boolean; report: ChaosReport }> => {
  const { options, finds } = expectations[variant]
  const defaults = { events: 700, kills: 0, wipes: 0, stops: 0, minutes: 0.3, seed: 7 }
  const report = await runChaos({ ...defaults, ...options, variant })
  return { found: report.deliveries > 300 && !isGood(report, 1) && finds(report), report }
}
