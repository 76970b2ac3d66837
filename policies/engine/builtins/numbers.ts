import { asInteger, refuse } from '../values/operands.ts'
import { integerOf, type Value } from '../values/value.ts'
import { type BuiltinTable, builtin, type EvaluationContext } from './builtin.ts'

/** A caller who may choose the ends must not be able to fill the memory. Items. */
const longestRange = 1_000_000n

const unitsForItem = 10

const range = (from: bigint, to: bigint, step: bigint, { spend }: EvaluationContext): Value[] => {
  if (step <= 0n) refuse('step must be a positive integer')
  const up = from <= to
  const count = (up ? to - from : from - to) / step + 1n
  if (count > longestRange) refuse(`the range has more than ${longestRange} items`)
  spend(unitsForItem * Number(count))
  return Array.from({ length: Number(count) }, (_, index) => {
    const distance = BigInt(index) * step
    return integerOf(up ? from + distance : from - distance)
  })
}

export const numberBuiltins: BuiltinTable = {
  'numbers.range_step': builtin([asInteger, asInteger, asInteger], range),
}
