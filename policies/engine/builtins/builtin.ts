import type { Meter } from '../base/meter.ts'
import { BuiltinError } from '../values/operands.ts'
import type { Value } from '../values/value.ts'
import { weigh } from '../values/weight.ts'

/**
 * A built-in function that the host gives to policies. Answers with a value, or with `undefined` or by throwing
 * `BuiltinError` where OPA has a built-in error: the expression is then undefined.
 */
export type Builtin = (operands: readonly Value[], context: EvaluationContext) => Value | undefined

/** A family of built-in functions, by the names that rules use. */
export type BuiltinTable = Readonly<Record<string, Builtin>>

/** What stays the same during one evaluation. */
export interface EvaluationContext extends Meter {
  /** Nanoseconds since 1970. */
  nowNs(): bigint
  /** Random bytes, the same for the same purpose and length. */
  random(purpose: string, length: number): Uint8Array
  print(line: string): void
}

/** What an operand must be: refuses others (see `values/operands.ts`). */
type Check<Operand> = (operand: Value | undefined) => Operand

type Checked<Checks extends readonly Check<unknown>[]> = { [Index in keyof Checks]: ReturnType<Checks[Index]> }

/** To make an error of it. */
const unitsForRefusal = 500

/**
 * A built-in function whose operands are checked in order before `answer` gets them. What passes to and fro is paid for
 * here, before a result is written; what more a function costs than that it pays itself.
 */
export const builtin =
  <const Checks extends readonly Check<unknown>[]>(
    checks: Checks,
    answer: (...operands: [...Checked<Checks>, context: EvaluationContext]) => Value | undefined,
  ): Builtin =>
  (operands, context) => {
    for (const operand of operands) weigh(operand, context)
    try {
      const checked = checks.map((check, index) => check(operands[index])) as unknown as Checked<Checks>
      const result = answer(...checked, context)
      if (result !== undefined) weigh(result, context)
      return result
    } catch (error) {
      if (error instanceof BuiltinError) context.spend(unitsForRefusal)
      throw error
    }
  }
