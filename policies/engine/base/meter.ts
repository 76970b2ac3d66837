/** Units of work that one evaluation has; see `EvaluationContext` in `builtins/builtin.ts`. */
export interface Meter {
  /**
   * Takes units of work from what this evaluation has: a unit is worth a few nanoseconds. Always the same for the same
   * operands, never by the clock. Throws `UnitsUsedUp`, which ends the evaluation: no function may catch it.
   */
  spend(units: number): void
  /**
   * Takes them only the first time in an evaluation, for what is remembered afterwards: a compiled pattern, say. What
   * other evaluations left behind makes nothing cheaper, or the same evaluation would cost one thing today and another
   * tomorrow.
   */
  spendOnce(purpose: string, units: number): void
}
