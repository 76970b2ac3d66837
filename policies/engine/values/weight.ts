import type { Meter } from '../base/meter.ts'
import { Decimal, type Value } from './value.ts'

/** To read or write one; half as many for each character of a text, which is as good as copied. */
const unitsForValue = 10
const charactersForUnit = 8
/** Long integers are turned from decimal to binary and back, and that takes more than their length. */
const unitsForDigit = 10

/** So many are gathered before they are spent. */
const chunk = 10_000

/**
 * Pays for a value as it is passed on: for all that it holds, each time it stands in it. What holds the same list over
 * and over may be small in memory and still too large to be written out. `times`: how much more each part costs than to
 * be read or written.
 */
export const weigh = (value: Value, { spend }: Pick<Meter, 'spend'>, times = 1): void => {
  let units = 0
  const add = (part: Value): void => {
    units += unitsForValue
    if (units >= chunk) {
      spend(units * times)
      units = 0
    }
    if (typeof part === 'string') units += Math.ceil(part.length / charactersForUnit)
    else if (typeof part === 'bigint') units += unitsForDigit * part.toString(16).length
    else if (part instanceof Decimal) units += unitsForValue + part.text.length
    else if (Array.isArray(part)) for (const item of part) add(item)
    else if (part instanceof Set) for (const item of part) add(item)
    else if (part instanceof Map) {
      for (const [key, member] of part) {
        add(key)
        add(member)
      }
    }
  }
  add(value)
  spend(units * times)
}
