import { asString, refuse } from '../values/operands.ts'
import type { HostBuiltin } from './index.ts'

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
  const [, major, minor, patch, before = ''] = pattern.exec(text) ?? []
  if (major === undefined) return undefined
  const numbers = [major, minor, patch].map((number) => BigInt(number!))
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

const compare = (a: Version, b: Version): number => {
  for (const [index, number] of a.numbers.entries()) {
    const order = sign(number, b.numbers[index]!)
    if (order !== 0) return order
  }
  if (a.before.length === 0 || b.before.length === 0) return sign(b.before.length, a.before.length)
  for (let index = 0; index < Math.min(a.before.length, b.before.length); index++) {
    const order = compareIdentifiers(a.before[index]!, b.before[index]!)
    if (order !== 0) return order
  }
  return sign(a.before.length, b.before.length)
}

const version = (text: string): Version => parse(text) ?? refuse('not a semantic version')

export const semverBuiltins: Record<string, HostBuiltin> = {
  'semver.compare': ([a, b]) => compare(version(asString(a)), version(asString(b))),
  'semver.is_valid': ([text]) => typeof text === 'string' && parse(text) !== undefined,
}
