import { asString, refuse } from '../values/operands.ts'
import { integerOf, numberOf, type RegoNumber, scientific } from '../values/values.ts'
import type { HostBuiltin } from './index.ts'

const decimal = { k: 1, m: 2, g: 3, t: 4, p: 5, e: 6 }
const factors: Record<string, { numerator: bigint; denominator?: bigint }> = { '': { numerator: 1n } }
for (const [letter, power] of Object.entries(decimal)) {
  factors[letter] = { numerator: 1000n ** BigInt(power) }
  factors[`${letter}i`] = { numerator: 1024n ** BigInt(power) }
}

const byteFactors: typeof factors = { ...factors }
for (const letter of Object.keys(decimal)) {
  byteFactors[`${letter}b`] = factors[letter]!
  byteFactors[`${letter}ib`] = factors[`${letter}i`]!
}

/** A fraction of integers, exact. */
interface Fraction {
  numerator: bigint
  denominator: bigint
}

const amount = /^([0-9.+-]*(?:[eE][+-]?\d{1,4}(?!\d))?)(.*)$/s
const decimalNumber = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/

const parse = (text: string, unitFactor: (unit: string) => (typeof factors)[string] | undefined): Fraction => {
  const bare = text.replaceAll('"', '')
  if (bare.includes(' ')) refuse('spaces are not allowed')
  const [, number = '', unit = ''] = amount.exec(bare)!
  if (number === '') refuse('there is no amount')
  if (!decimalNumber.test(number)) refuse('the amount is not a number')
  const factor = unitFactor(unit) ?? refuse('unknown unit')
  const { digits, exponent } = scientific(number.replace(/^\+/, ''))
  const scale = 10n ** BigInt(Math.abs(exponent))
  return {
    numerator: digits * factor.numerator * (exponent > 0 ? scale : 1n),
    denominator: (factor.denominator ?? 1n) * (exponent < 0 ? scale : 1n),
  }
}

/** An integer where it is one, else ten decimals, rounded away from zero at a tie. */
const written = ({ numerator, denominator }: Fraction): RegoNumber => {
  if (numerator % denominator === 0n) return integerOf(numerator / denominator)
  const negative = numerator < 0n
  const scaled = (negative ? -numerator : numerator) * 10n ** 10n
  const rounded = String((scaled * 2n + denominator) / (denominator * 2n)).padStart(11, '0')
  return numberOf(`${negative ? '-' : ''}${rounded.slice(0, -10)}.${rounded.slice(-10)}`)
}

export const unitBuiltins: Record<string, HostBuiltin> = {
  /** `m` is milli, `M` mega; for all other units case does not matter. */
  'units.parse': ([text]) =>
    written(
      parse(asString(text), (unit) =>
        unit === 'm' ? { numerator: 1n, denominator: 1000n } : factors[unit.toLowerCase()],
      ),
    ),
  'units.parse_bytes': ([text]) => {
    const { numerator, denominator } = parse(asString(text), (unit) => byteFactors[unit.toLowerCase()])
    return integerOf(numerator / denominator)
  },
}
