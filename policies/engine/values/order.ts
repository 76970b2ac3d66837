import { enclosed } from './text.ts'
import { decimalOf, isNumber, type RegoNumber, type RegoObject, type Value } from './value.ts'

/**
 * Rego's order of all values: null, booleans, numbers, strings, arrays, objects, sets. −1, 0 or 1, as all comparisons
 * here.
 */
export const compareValues = (a: Value, b: Value): number => {
  if (typeof a === 'string' && typeof b === 'string') return compareStrings(a, b)
  if (isNumber(a) && isNumber(b)) return compareNumbers(a, b)
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b)
  if (Array.isArray(a) && Array.isArray(b)) return compareLists(a, b)
  if (a instanceof Map && b instanceof Map) return compareLists(inOrder(a), inOrder(b))
  if (a instanceof Set && b instanceof Set) return compareLists(inOrder(a), inOrder(b))
  return Math.sign(kindOf(a) - kindOf(b))
}

export const equalValues = (a: Value, b: Value): boolean =>
  a === b || (sizeOf(a) === sizeOf(b) && compareValues(a, b) === 0)

/** Of a set or an object: which need not be put in order to see that they differ. */
const sizeOf = (value: Value): number => (value instanceof Set || value instanceof Map ? value.size : -1)

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
  // Not by writing them out: 1e999999999 has too many digits for that.
  const [left, right] = [decimalOf(a), decimalOf(b)]
  if (left.sign !== right.sign) return Math.sign(left.sign - right.sign)
  const size = Math.sign(left.point - right.point) || compareStrings(left.digits, right.digits)
  return size === 0 ? 0 : size * left.sign
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

type Collection = Set<Value> | Map<Value, Value>

/** What was made of a set or an object: neither is changed once it is looked at here. */
const remembered = <Made>(make: (collection: Collection) => Made): ((collection: Collection) => Made) => {
  const known = new WeakMap<Collection, Made>()
  return (collection) => {
    const before = known.get(collection)
    if (before !== undefined) return before
    const made = make(collection)
    known.set(collection, made)
    return made
  }
}

/** Sets of sets would else be put in order again for each comparison, on every level. */
const inOrder = remembered<readonly Value[]>((collection) =>
  collection instanceof Map ? sortedEntries(collection) : sorted(collection),
)

// --- finding

/** The same text for equal values, and for no others. */
export const identityOf = (value: Value): string => {
  if (typeof value === 'string') return JSON.stringify(value)
  if (value === null || typeof value === 'boolean') return String(value)
  if (isNumber(value)) return numberIdentity(value)
  if (Array.isArray(value)) return enclosed('[', value, ']', identityOf)
  if (value instanceof Set) return inAnyOrder('<', [...value].map(identityOf), '>')
  const members = [...value].map(([key, member]) => `${identityOf(key)}:${identityOf(member)}`)
  return inAnyOrder('{', members, '}')
}

/** As long as it is always the same one; long texts are seldom looked at. */
const inAnyOrder = (open: string, members: string[], close: string): string => {
  members.sort((a, b) => a.length - b.length || (a < b ? -1 : 1))
  return enclosed(open, members, close, (member) => member)
}

const numberIdentity = (value: RegoNumber): string => {
  if (Number.isSafeInteger(value)) return String(value)
  const { sign, digits, point } = decimalOf(value)
  return point >= digits.length && point < 20
    ? String(BigInt(digits.padEnd(point, '0')) * BigInt(sign))
    : `${sign}.${digits}e${point}`
}

const byIdentity = remembered<ReadonlyMap<string, Value>>(
  (collection) => new Map([...collection.keys()].map((key) => [identityOf(key), key])),
)

/** The member of a set, or the key of an object, that equals `key`: what `Map.get` and the like need. */
export const findKey = (keys: Collection, key: Value): { key: Value } | undefined => {
  if (keys.has(key)) return { key }
  if (typeof key === 'string' || key === null || typeof key === 'boolean') return undefined
  const other = byIdentity(keys).get(identityOf(key))
  return other === undefined ? undefined : { key: other }
}

/** The member of the object under a key that equals `key`. */
export const getMember = (object: RegoObject, key: Value): Value | undefined => {
  const found = findKey(object, key)
  return found && object.get(found.key)
}
