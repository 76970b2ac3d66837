import type { Metrics } from '../../platform/metrics.ts'

/** By pages of ours and by those of others. */
export const signInsCounter = (metrics: Metrics) =>
  metrics.counter('surrogate_sign_ins_total', 'Attempts to sign in by how they were proven and came out.', [
    'proof',
    'outcome',
  ])
