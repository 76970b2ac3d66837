import { asString, asValue, refuse } from '../values/operands.ts'
import { type BuiltinTable, builtin } from './builtin.ts'

/** Semantic versions as OPA reads them: a leading `v` is allowed, and so are leading zeros. */
interface Version {
  numbers: readonly bigint[]
  /** What stands behind `-`, between dots; none for a release. */
  before: readonly string[]
}

const identifiers = '(?:[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*)?'
const pattern = new RegExp(`^v?(\\d+)\\.(\\d+)\\.(\\d+)(?:-(${identifiers}))?(?:\\+${identifiers})?$`)

const largest = 2n ** 63n - 1n

const parse = (text: string): Version | undefined => {
  const found = pattern.exec(text)
  if (!found) return undefined
  const [, major = '', minor = '', patch = '', before = ''] = found
  const numbers = [major, minor, patch].map(BigInt)
  if (numbers.some((number) => number > largest)) return undefined
  return { numbers, before: before === '' ? [] : before.split('.') }
}

const isNumeric = (identifier: string): boolean => /^\d+$/.test(identifier)

const sign = (a: bigint | string | number, b: bigint | string | number): number => (a < b ? -1 : a > b ? 1 : 0)

/** semver.org §11.4. */
const compareIdentifiers = (a: string, b: string): number => {
  if (isNumeric(a) !== isNumeric(b)) return isNumeric(a) ? -1 : 1
  return isNumeric(a) ? sign(BigInt(a), BigInt(b)) : sign(a, b)
}

/** The order of the first items that differ; of two lists where none does, the shorter one comes first. */
const compareLists = <Item>(a: readonly Item[], b: readonly Item[], order: (a: Item, b: Item) => number): number => {
  for (const [index, item] of a.entries()) {
    const other = b[index]
    if (other === undefined) return 1
    const found = order(item, other)
    if (found !== 0) return found
  }
  return sign(a.length, b.length)
}

/** semver.org §11. */
const compare = (a: Version, b: Version): number => {
  const order = compareLists(a.numbers, b.numbers, sign)
  if (order !== 0) return order
  // A release comes after all that leads up to it.
  if (a.before.length === 0 || b.before.length === 0) return sign(b.before.length, a.before.length)
  return compareLists(a.before, b.before, compareIdentifiers)
}

const unitsForCharacter = 20

const versionOf = (text: string): Version => parse(text) ?? refuse('not a semantic version')

export const semverBuiltins: BuiltinTable = {
  'semver.compare': builtin([asString, asString], (a, b, { spend }) => {
    spend(unitsForCharacter * (a.length + b.length))
    return compare(versionOf(a), versionOf(b))
  }),
  'semver.is_valid': builtin([asValue], (text, { spend }) => {
    if (typeof text !== 'string') return false
    spend(unitsForCharacter * text.length)
    return parse(text) !== undefined
  }),
}
