import { asArray, asItems, asString } from '../values/operands.ts'
import type { Value } from '../values/value.ts'
import { weigh } from '../values/weight.ts'
import { type BuiltinTable, builtin } from './builtin.ts'
import { showValue, timesToShow } from './show-value.ts'

export const printBuiltins: BuiltinTable = {
  /**
   * What `print(…)` in a rule becomes: one list whose items are the sets of values that an argument can have, empty
   * when undefined.
   */
  'internal.print': builtin([asArray], (args, { print, spend }) => {
    weigh(args, { spend }, timesToShow)
    const shown = args.map((values) => {
      const items = asItems(values)
      return items.length === 0 ? '<undefined>' : items.map(show).join('|')
    })
    print(shown.join(' '))
    return true
  }),
  /** Notes are for OPA's own tracing; a rule that writes some must not fail for it. */
  trace: builtin([asString], () => true),
}

const show = (value: Value): string => (typeof value === 'string' ? value : showValue(value))
