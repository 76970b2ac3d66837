import { asString, refuse } from '../values/operands.ts'
import { integerOf, numberOf, type RegoNumber, scientific } from '../values/value.ts'
import { type BuiltinTable, builtin } from './builtin.ts'

/** A fraction of integers, exact. */
interface Fraction {
  numerator: bigint
  denominator: bigint
}

const whole = (numerator: bigint): Fraction => ({ numerator, denominator: 1n })

/** `k` and `ki` to `e` and `ei`. */
const prefixes = [...'kmgtpe'].flatMap((letter, index): [string, Fraction][] => [
  [letter, whole(1000n ** BigInt(index + 1))],
  [`${letter}i`, whole(1024n ** BigInt(index + 1))],
])
const units = new Map([['', whole(1n)], ...prefixes])
const byteUnits = new Map([...units, ...prefixes.map(([name, factor]): [string, Fraction] => [`${name}b`, factor])])

/** `m` is milli, `M` mega; for all other units case does not matter. */
const unitOf = (name: string): Fraction | undefined =>
  name === 'm' ? { numerator: 1n, denominator: 1000n } : units.get(name.toLowerCase())

const byteUnitOf = (name: string): Fraction | undefined => byteUnits.get(name.toLowerCase())

const amount = /^[0-9.+-]*(?:[eE][+-]?\d{1,4}(?!\d))?/
const decimalNumber = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/

const parse = (text: string, factorOf: (unit: string) => Fraction | undefined): Fraction => {
  const bare = text.replaceAll('"', '')
  if (bare.includes(' ')) refuse('spaces are not allowed')
  const [number = ''] = amount.exec(bare) ?? []
  if (number === '') refuse('there is no amount')
  if (!decimalNumber.test(number)) refuse('the amount is not a number')
  const factor = factorOf(bare.slice(number.length)) ?? refuse('unknown unit')
  const { digits, exponent } = scientific(number.replace(/^\+/, ''))
  const scale = 10n ** BigInt(Math.abs(exponent))
  return {
    numerator: digits * factor.numerator * (exponent > 0 ? scale : 1n),
    denominator: factor.denominator * (exponent < 0 ? scale : 1n),
  }
}

/** They are divided by each other, which takes more than their length. */
const unitsForDigit = 50

/** An integer where it is one, else ten decimals, rounded away from zero at a tie. */
const written = ({ numerator, denominator }: Fraction): RegoNumber => {
  if (numerator % denominator === 0n) return integerOf(numerator / denominator)
  const negative = numerator < 0n
  const scaled = (negative ? -numerator : numerator) * 10n ** 10n
  const rounded = String((scaled * 2n + denominator) / (denominator * 2n)).padStart(11, '0')
  return numberOf(`${negative ? '-' : ''}${rounded.slice(0, -10)}.${rounded.slice(-10)}`)
}

export const unitBuiltins: BuiltinTable = {
  'units.parse': builtin([asString], (text, { spend }) => {
    spend(unitsForDigit * text.length)
    return written(parse(text, unitOf))
  }),
  'units.parse_bytes': builtin([asString], (text, { spend }) => {
    spend(unitsForDigit * text.length)
    const { numerator, denominator } = parse(text, byteUnitOf)
    return integerOf(numerator / denominator)
  }),
}
