import type { Value } from '../values/value.ts'

/**
 * A built-in function that the host gives to policies. Answers with a value, or with `undefined` or by throwing
 * `BuiltinError` where OPA has a built-in error: the expression is then undefined.
 */
export type Builtin = (operands: readonly Value[], context: EvaluationContext) => Value | undefined

/** A family of built-in functions, by the names that rules use. */
export type BuiltinTable = Readonly<Record<string, Builtin>>

/** What stays the same during one evaluation. */
export interface EvaluationContext {
  /** Nanoseconds since 1970. */
  nowNs(): bigint
  /** Random bytes, the same for the same purpose and length. */
  random(purpose: string, length: number): Uint8Array
  print(line: string): void
  /**
   * Takes units of work from what this evaluation has: a unit is worth a few nanoseconds. Always the same for the same
   * operands, never by the clock. Throws `UnitsUsedUp`, which ends the evaluation: no function may catch it.
   */
  spend(units: number): void
}

/** What an operand must be: refuses others (see `values/operands.ts`). */
type Check<Operand> = (operand: Value | undefined) => Operand

type Checked<Checks extends readonly Check<unknown>[]> = { [Index in keyof Checks]: ReturnType<Checks[Index]> }

/** A built-in function whose operands are checked in order before `answer` gets them. */
export const builtin =
  <const Checks extends readonly Check<unknown>[]>(
    checks: Checks,
    answer: (...operands: [...Checked<Checks>, context: EvaluationContext]) => Value | undefined,
  ): Builtin =>
  (operands, context) =>
    answer(...(checks.map((check, index) => check(operands[index])) as unknown as Checked<Checks>), context)
