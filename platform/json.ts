/** Why a text was not read, as the end of a sentence about it. */
export type JsonFault =
  | 'is not JSON'
  | 'has a member name twice in one object'
  | 'has an unpaired surrogate'
  | 'is nested too deeply'
  | 'has a number that a double does not hold exactly'

export interface JsonRules {
  /** Containers within containers. */
  maxDepth: number
  /**
   * Refuses numbers that are others once they are read (RFC 7493 §2.2): integers beyond 2^53, `1e400`, more digits than
   * a double has. Default false.
   */
  exactNumbers?: boolean
  /** Refuses names in one object that differ in case only: Go and .NET take them for one. Default false. */
  ignoreCase?: boolean
}

/**
 * Parses JSON that every parser reads the same: no member name twice at any depth (compared after unescaping), no
 * unpaired surrogate, no byte order mark (RFC 7493 §2). Parsers that differ on which of two members wins are a known
 * way around checks.
 */
export const readJson = (text: string, rules: JsonRules): { value: unknown } | { fault: JsonFault } => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { fault: 'is not JSON' }
  }
  const fault = faultIn(text, rules)
  return fault === undefined ? { value } : { fault }
}

const endOfString = (text: string, start: number): number => {
  let index = start + 1
  while (text.charCodeAt(index) !== 0x22) index += text.charCodeAt(index) === 0x5c ? 2 : 1
  return index
}

/**
 * `text` is valid JSON. One entry of `names` per open container: the member names so far, or undefined for an array.
 */
const faultIn = (
  text: string,
  { maxDepth, exactNumbers = false, ignoreCase = false }: JsonRules,
): JsonFault | undefined => {
  const names: (Set<string> | undefined)[] = []
  let expectName = false
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    switch (code) {
      case 0x7b: // {
      case 0x5b: // [
        expectName = code === 0x7b
        names.push(expectName ? new Set() : undefined)
        if (names.length > maxDepth) return 'is nested too deeply'
        break
      case 0x7d: // }
      case 0x5d: // ]
        names.pop()
        expectName = false
        break
      case 0x2c: // ,
        expectName = names.at(-1) !== undefined
        break
      case 0x22: {
        const end = endOfString(text, index)
        const literal = text.slice(index, end + 1)
        const content: string = literal.includes('\\') ? JSON.parse(literal) : literal.slice(1, -1)
        if (!content.isWellFormed()) return 'has an unpaired surrogate'
        if (expectName) {
          const seen = names.at(-1)!
          const name = ignoreCase ? folded(content) : content
          if (seen.has(name)) return 'has a member name twice in one object'
          seen.add(name)
          expectName = false
        }
        index = end
        break
      }
      default:
        if (!exactNumbers || !(code === 0x2d || (code >= 0x30 && code <= 0x39))) break
        number.lastIndex = index
        number.test(text)
        if (!isExact(text.slice(index, number.lastIndex))) return 'has a number that a double does not hold exactly'
        index = number.lastIndex - 1
    }
  }
  return undefined
}

/** By both cases, since `ſ` has only an upper one and the Kelvin sign only a lower one that others share. */
const folded = (name: string): string => name.normalize().toUpperCase().toLowerCase()

const number = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y

/** Doubles hold every number of so many digits. */
const alwaysHeld = 15

/** Whether the double nearest to a number is written as the same number. */
const isExact = (literal: string): boolean => {
  if (literal.length <= alwaysHeld && !/[eE]/.test(literal)) return true
  const held = Number(literal)
  return Number.isFinite(held) && normalForm(literal) === normalForm(String(held))
}

/** Two numbers that are equal have the same: digits without zeros at either end, and the power of ten behind them. */
const normalForm = (literal: string): string => {
  const [, sign, whole = '', fraction = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(literal) ?? []
  const all = whole + fraction
  const digits = all.replace(/^0+/, '')
  const significant = withoutEndingZeros(digits)
  if (significant === '') return '0'
  return `${sign}${significant}e${Number(power) - fraction.length + (digits.length - significant.length)}`
}

/** Not by `/0+$/`, which begins anew at every zero: a minute for 256 kB. */
const withoutEndingZeros = (digits: string): string => {
  let end = digits.length
  while (digits[end - 1] === '0') end--
  return digits.slice(0, end)
}
