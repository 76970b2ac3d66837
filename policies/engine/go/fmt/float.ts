/**
 * How Go writes a double (`strconv.FormatFloat`), exactly and with ties to even, which JavaScript's `toFixed` does not
 * do.
 */

/**
 * A positive double as `digits` × 10^(`point` − number of digits): the decimal point stands before the digit at
 * `point`.
 */
interface Digits {
  digits: string
  point: number
}

const parts = (value: number): { mantissa: bigint; exponent: number } => {
  const view = new DataView(new ArrayBuffer(8))
  view.setFloat64(0, Math.abs(value))
  const bits = view.getBigUint64(0)
  const power = Number(bits >> 52n)
  const fraction = bits & 0xfffffffffffffn
  return power === 0
    ? { mantissa: fraction, exponent: -1074 }
    : { mantissa: fraction | 0x10000000000000n, exponent: power - 1075 }
}

const exact = (value: number): Digits => {
  const { mantissa, exponent } = parts(value)
  if (mantissa === 0n) return { digits: '', point: 0 }
  if (exponent >= 0) {
    const digits = String(mantissa << BigInt(exponent))
    return { digits, point: digits.length }
  }
  const digits = String(mantissa * 5n ** BigInt(-exponent))
  return { digits, point: digits.length + exponent }
}

/** The fewest digits that read back as the same double. */
const shortest = (value: number): Digits => {
  if (value === 0) return { digits: '', point: 0 }
  const [mantissa = '', exponent = '0'] = Math.abs(value).toExponential().split('e')
  return { digits: mantissa.replace('.', ''), point: Number(exponent) + 1 }
}

/** Rounded to so many digits, ties to even; trailing zeros gone. */
const round = ({ digits, point }: Digits, count: number): Digits => {
  if (count < 0) return { digits: '', point: 0 }
  if (count >= digits.length) return trim({ digits, point })
  const rest = digits.slice(count)
  const odd = count > 0 && Number(digits[count - 1]) % 2 === 1
  const isTie = /^50*$/.test(rest)
  const up = isTie ? odd : rest >= '5'
  const kept = digits.slice(0, count)
  if (!up) return trim({ digits: kept, point })
  const raised = String(BigInt(kept || '0') + 1n).padStart(count, '0')
  return trim({ digits: raised, point: point + raised.length - count })
}

const trim = ({ digits, point }: Digits): Digits => {
  const short = digits.replace(/0+$/, '')
  return short === '' ? { digits: '', point: 0 } : { digits: short, point }
}

const withExponent = ({ digits, point }: Digits, precision: number, letter: string): string => {
  const exponent = digits === '' ? 0 : point - 1
  const fraction = precision > 0 ? `.${digits.slice(1, 1 + precision).padEnd(precision, '0')}` : ''
  const power = String(Math.abs(exponent)).padStart(2, '0')
  return `${digits[0] ?? '0'}${fraction}${letter}${exponent < 0 ? '-' : '+'}${power}`
}

const plain = ({ digits, point }: Digits, precision: number): string => {
  const whole = point > 0 ? digits.slice(0, point).padEnd(point, '0') : '0'
  const fraction = point > 0 ? digits.slice(point) : '0'.repeat(-point) + digits
  return whole + (precision > 0 ? `.${fraction.slice(0, precision).padEnd(precision, '0')}` : '')
}

/** Verbs e, E, f, g, G, b, x, X; `precision` −1 means the shortest text that reads back the same. */
export const formatFloat = (value: number, verb: string, precision: number): string => {
  const sign = value < 0 || Object.is(value, -0) ? '-' : ''
  const lower = verb.toLowerCase()
  const letter = verb === lower ? 'e' : 'E'
  if (lower === 'b') return sign + binary(value)
  if (lower === 'x') return sign + hexadecimal(value, precision, verb)
  const short = precision < 0
  if (lower === 'e') {
    const digits = short ? shortest(value) : round(exact(value), precision + 1)
    return sign + withExponent(digits, short ? Math.max(digits.digits.length - 1, 0) : precision, letter)
  }
  if (lower === 'f') {
    const all = short ? shortest(value) : exact(value)
    const digits = short ? all : round(all, all.point + precision)
    return sign + plain(digits, short ? Math.max(digits.digits.length - digits.point, 0) : precision)
  }
  const wanted = precision === 0 ? 1 : precision
  const digits = short ? shortest(value) : round(exact(value), wanted)
  const count = digits.digits.length
  const limit = short ? 6 : wanted > count && count >= digits.point ? count : wanted
  const exponent = digits.point - 1
  if (exponent < -4 || exponent >= limit) {
    return sign + withExponent(digits, Math.max((short ? count : Math.min(wanted, count)) - 1, 0), letter)
  }
  return sign + plain(digits, Math.max(count - digits.point, 0))
}

const binary = (value: number): string => {
  const { mantissa, exponent } = parts(value)
  return `${mantissa}p${exponent < 0 ? '' : '+'}${exponent}`
}

const hexadecimal = (value: number, precision: number, verb: string): string => {
  let { mantissa, exponent } = parts(value)
  if (mantissa === 0n) exponent = -52
  // One digit before the point and 13 after it.
  while (mantissa !== 0n && mantissa < 0x10000000000000n) {
    mantissa <<= 1n
    exponent--
  }
  if (precision >= 0 && precision < 13) {
    const unit = 1n << BigInt((13 - precision) * 4)
    const rest = mantissa % unit
    mantissa -= rest
    if (rest * 2n > unit || (rest * 2n === unit && (mantissa / unit) % 2n === 1n)) mantissa += unit
    if (mantissa >= 0x20000000000000n) {
      mantissa >>= 1n
      exponent++
    }
  }
  const all = mantissa.toString(16).padStart(14, '0')
  const fraction = precision < 0 ? all.slice(1).replace(/0+$/, '') : all.slice(1, 1 + precision).padEnd(precision, '0')
  const power = exponent + 52
  const text = `0x${all[0]}${fraction && `.${fraction}`}p${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`
  return verb === 'X' ? text.toUpperCase() : text
}
