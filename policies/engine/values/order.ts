import { inCommonUnits, isNumber, type RegoNumber, type RegoObject, toDouble, type Value } from './value.ts'

/**
 * Rego's order of all values: null, booleans, numbers, strings, arrays, objects, sets. −1, 0 or 1, as all comparisons
 * here.
 */
export const compareValues = (a: Value, b: Value): number => {
  if (typeof a === 'string' && typeof b === 'string') return compareStrings(a, b)
  if (isNumber(a) && isNumber(b)) return compareNumbers(a, b)
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b)
  if (Array.isArray(a) && Array.isArray(b)) return compareLists(a, b)
  if (a instanceof Map && b instanceof Map) return compareLists(sortedEntries(a), sortedEntries(b))
  if (a instanceof Set && b instanceof Set) return compareLists(sorted(a), sorted(b))
  return Math.sign(kindOf(a) - kindOf(b))
}

export const equalValues = (a: Value, b: Value): boolean => a === b || compareValues(a, b) === 0

const kindOf = (value: Value): number => {
  if (value === null) return 0
  if (typeof value === 'boolean') return 1
  if (isNumber(value)) return 2
  if (typeof value === 'string') return 3
  if (Array.isArray(value)) return 4
  return value instanceof Map ? 5 : 6
}

const compareLists = (a: readonly Value[], b: readonly Value[]): number => {
  for (const [index, item] of a.entries()) {
    const other = b[index]
    if (other === undefined) return 1
    const order = compareValues(item, other)
    if (order !== 0) return order
  }
  return Math.sign(a.length - b.length)
}

export const compareNumbers = (a: RegoNumber, b: RegoNumber): number => {
  if (typeof a === 'number' && typeof b === 'number') return Math.sign(a - b)
  // Nobody can tell 1e100000 from 1e100001 apart without writing them out. Doubles say which is larger, or that both
  // are infinite.
  const units = inCommonUnits(a, b, 10_000)
  if (!units) return Math.sign(toDouble(a) - toDouble(b)) || 0
  return units.a < units.b ? -1 : units.a > units.b ? 1 : 0
}

/** By code points, as Go compares the bytes of UTF-8. */
export const compareStrings = (a: string, b: string): number => {
  if (a === b) return 0
  const length = Math.min(a.length, b.length)
  for (let index = 0; index < length; index++) {
    const [left, right] = [a.charCodeAt(index), b.charCodeAt(index)]
    if (left === right) continue
    // Surrogates stand for characters beyond U+FFFF, so they come after U+E000–U+FFFF.
    const surrogates = Number(left >= 0xd800 && left < 0xe000) - Number(right >= 0xd800 && right < 0xe000)
    return surrogates || Math.sign(left - right)
  }
  return Math.sign(a.length - b.length)
}

export const sorted = (values: Iterable<Value>): Value[] => [...values].sort(compareValues)

export const sortedEntries = (object: RegoObject): [Value, Value][] =>
  [...object].sort(([a], [b]) => compareValues(a, b))

/** The member of a set, or the key of an object, that equals `key`: what `Map.get` and the like need. */
export const findKey = (keys: Set<Value> | Map<Value, Value>, key: Value): { key: Value } | undefined => {
  if (keys.has(key)) return { key }
  if (typeof key === 'string' || key === null || typeof key === 'boolean') return undefined
  for (const other of keys.keys()) if (equalValues(other, key)) return { key: other }
  return undefined
}

/** The member of the object under a key that equals `key`. */
export const getMember = (object: RegoObject, key: Value): Value | undefined => {
  const found = findKey(object, key)
  return found && object.get(found.key)
}
