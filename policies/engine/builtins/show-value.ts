import { quote } from '../go/fmt/quote.ts'
import { sorted, sortedEntries } from '../values/order.ts'
import { isNumber, numberText, type Value } from '../values/value.ts'

/** A value as Rego writes it: `{"a": [1, "x"]}`, `{1, 2}`, `set()`; members and keys in order. */
export const showValue = (value: Value): string => {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return quote(value)
  if (isNumber(value)) return numberText(value)
  if (Array.isArray(value)) return `[${value.map(showValue).join(', ')}]`
  if (value instanceof Set) return value.size === 0 ? 'set()' : `{${sorted(value).map(showValue).join(', ')}}`
  return `{${sortedEntries(value)
    .map(([key, member]) => `${showValue(key)}: ${showValue(member)}`)
    .join(', ')}}`
}
