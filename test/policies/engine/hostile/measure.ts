import { UnitsUsedUp } from '../../../../policies/engine/base/policy-error.ts'
import type { BuiltinTable, EvaluationContext } from '../../../../policies/engine/builtins/builtin.ts'
import { BuiltinError } from '../../../../policies/engine/values/operands.ts'
import type { HostileCall } from './call.ts'

/** What an evaluation has, unless a setting says otherwise. */
export const allUnits = 5_000_000

export interface Measured {
  outcome: 'answered' | 'refused' | 'used up'
  units: number
}

/** Calls the function with a meter of its own. Throws what is neither its answer nor its refusal. */
export const measure = (builtins: BuiltinTable, { builtin, operands }: HostileCall): Measured => {
  const meter = createMeter()
  try {
    builtins[builtin]?.(operands(), meter.context)
    return { outcome: 'answered', units: meter.units() }
  } catch (error) {
    if (error instanceof UnitsUsedUp) return { outcome: 'used up', units: allUnits }
    if (error instanceof BuiltinError) return { outcome: 'refused', units: meter.units() }
    throw error
  }
}

const createMeter = (): { context: EvaluationContext; units: () => number } => {
  let units = 0
  const paid = new Set<string>()
  const context: EvaluationContext = {
    nowNs: () => 1_700_000_000_000_000_000n,
    random: (_purpose, length) => new Uint8Array(length),
    print: () => {},
    spend(more) {
      units += more
      if (units > allUnits) throw new UnitsUsedUp(allUnits)
    },
    spendOnce(purpose, more) {
      if (!paid.has(purpose)) context.spend(more)
      paid.add(purpose)
    },
  }
  return { context, units: () => units }
}
