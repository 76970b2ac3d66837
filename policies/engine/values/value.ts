/**
 * Rego values as built-in functions see them. An integer beyond 2^53 is a `bigint`; another number that a double would
 * print differently (`1.50`, `1e400`) is a `Decimal`.
 */
export type Value = null | boolean | string | RegoNumber | Value[] | RegoSet | RegoObject
export type RegoNumber = number | bigint | Decimal
export type RegoSet = Set<Value>
export type RegoObject = Map<Value, Value>

export class Decimal {
  readonly text: string
  #form: DecimalForm | undefined
  constructor(text: string) {
    this.text = text
  }
  /** Found once: to put numbers in order each is looked at many times. */
  get form(): DecimalForm {
    this.#form ??= formOf(this.text)
    return this.#form
  }
}

/** `sign` × 0.`digits` × 10^`point`, without zeros at either end: two equal numbers have the same. */
export interface DecimalForm {
  sign: number
  digits: string
  point: number
}

export const isNumber = (value: Value): value is RegoNumber =>
  typeof value === 'number' || typeof value === 'bigint' || value instanceof Decimal

/** Nearest double; may be infinite. */
export const toDouble = (value: RegoNumber): number => Number(value instanceof Decimal ? value.text : value)

/**
 * The integer that the number is, also when written as `1.0` or `1e3`; `undefined` when it is none (or has over 400
 * digits).
 */
export const toInteger = (value: RegoNumber): bigint | undefined => {
  if (typeof value === 'bigint') return value
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : undefined
  const { digits, exponent } = scientific(value.text)
  if (exponent >= 0) return exponent > 400 ? undefined : digits * 10n ** BigInt(exponent)
  if (digits === 0n) return 0n
  if (exponent < -400) return undefined
  const unit = 10n ** BigInt(-exponent)
  return digits % unit === 0n ? digits / unit : undefined
}

/** The number as `digits` × 10^`exponent`. */
export const scientific = (text: string): { digits: bigint; exponent: number } => {
  const [, sign, whole, fraction = '', power = '0'] = /^(-?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  if (whole === undefined) throw new SyntaxError(`not a number: ${text}`)
  const digits = BigInt(`${whole}${fraction}` || '0')
  return { digits: sign === '-' ? -digits : digits, exponent: Number(power) - fraction.length }
}

export const decimalOf = (value: RegoNumber): DecimalForm =>
  value instanceof Decimal ? value.form : formOf(String(value))

const formOf = (text: string): DecimalForm => {
  const [, minus, whole = '', fraction = '', power = '0'] =
    /^(-?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  const all = whole + fraction
  const start = all.search(/[1-9]/)
  if (start < 0) return { sign: 0, digits: '', point: 0 }
  let end = all.length
  while (all[end - 1] === '0') end--
  return { sign: minus ? -1 : 1, digits: all.slice(start, end), point: whole.length - start + Number(power) }
}

/**
 * Both numbers as integers of the same power of ten; `undefined` when their exponents are more than `mostDigits` apart,
 * since they would have to be written out.
 */
export const inCommonUnits = (
  a: RegoNumber,
  b: RegoNumber,
  mostDigits: number,
): { a: bigint; b: bigint } | undefined => {
  const [left, right] = [scientific(numberText(a)), scientific(numberText(b))]
  const exponent = Math.min(left.exponent, right.exponent)
  if (Math.max(left.exponent, right.exponent) - exponent > mostDigits) return undefined
  return {
    a: left.digits * 10n ** BigInt(left.exponent - exponent),
    b: right.digits * 10n ** BigInt(right.exponent - exponent),
  }
}

export const numberText = (value: RegoNumber): string => (value instanceof Decimal ? value.text : String(value))

/** `text` as JSON writes numbers. */
export const numberOf = (text: string): RegoNumber => {
  const number = Number(text)
  if (String(number) === text) return number
  return /^-?\d+$/.test(text) ? integerOf(BigInt(text)) : new Decimal(text)
}

/** A `number` where that is exact. */
export const integerOf = (value: bigint): number | bigint =>
  value >= -9007199254740991n && value <= 9007199254740991n ? Number(value) : value
