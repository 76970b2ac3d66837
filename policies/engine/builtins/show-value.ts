import { quote } from '../go/fmt/quote.ts'
import { sorted, sortedEntries } from '../values/order.ts'
import { enclosed } from '../values/text.ts'
import { isNumber, numberText, type Value } from '../values/value.ts'

/** How much more that is than to read or write it: members are put in order, and each character looked at. */
export const timesToShow = 12

/** A value as Rego writes it: `{"a": [1, "x"]}`, `{1, 2}`, `set()`; members and keys in order. */
export const showValue = (value: Value): string => {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return quote(value)
  if (isNumber(value)) return numberText(value)
  if (Array.isArray(value)) return enclosed('[', value, ']', showValue, ', ')
  if (value instanceof Set) return value.size === 0 ? 'set()' : enclosed('{', sorted(value), '}', showValue, ', ')
  const members = sortedEntries(value)
  return enclosed('{', members, '}', ([key, member]) => `${showValue(key)}: ${showValue(member)}`, ', ')
}
