import type { Meter } from '../../base/meter.ts'
import { costOf, unitsForVerb } from './cost.ts'
import { formatFloat } from './float.ts'
import { canBackquote, isPrintable, quote } from './quote.ts'

/** What Go's `fmt.Sprintf` is given: the types that OPA and text/template hand to it. */
export type GoValue =
  | { type: 'string' | 'json.Number'; value: string }
  | { type: 'int64' | 'int'; value: bigint }
  | { type: '*big.Int'; value: bigint }
  | { type: 'float64'; value: number }
  | { type: 'bool'; value: boolean }

interface Flags {
  sharp: boolean
  zero: boolean
  plus: boolean
  minus: boolean
  space: boolean
  /** `%#v` and `%+v` ask for another form, not for signs and prefixes. */
  sharpV: boolean
  plusV: boolean
  width?: number | undefined
  precision?: number | undefined
}

/**
 * `fmt.Sprintf`: verbs, flags, `*`, `[n]`, and what it writes for a verb that does not fit (`%!d(string=x)`). What a
 * verb writes is paid for before: a format of a few characters can ask for millions.
 */
export const sprintf = (format: string, args: readonly GoValue[], { spend }: Meter): string => {
  let result = ''
  let at = 0
  let next = 0
  let reordered = false
  let badIndex = false
  const lastBracket = format.lastIndexOf(']')

  /** `[n]`, counted from 1. */
  const explicitIndex = (): boolean => {
    if (format[at] !== '[') return false
    reordered = true
    const end = at > lastBracket ? -1 : format.indexOf(']', at)
    if (end < 0 || format.length - at < 3) {
      badIndex = true
      at += 1
      return false
    }
    const inside = format.slice(at + 1, end)
    at = end + 1
    const isNumber = /^\d{1,7}$/.test(inside)
    const index = Number(inside) - 1
    if (isNumber && index >= 0 && index < args.length) next = index
    else badIndex = true
    return isNumber
  }
  const digits = (): number | undefined => {
    const [found = ''] = /^\d*/.exec(format.slice(at, at + 12)) ?? []
    if (Number(found) > 10_000_009 || found.length > 8) {
      at = format.length
      return undefined
    }
    at += found.length
    return found === '' ? undefined : Number(found)
  }
  const starred = (): number | undefined => {
    const argument = args[next]
    if (next < args.length) next++
    if (argument?.type !== 'int64' && argument?.type !== 'int') return undefined
    return argument.value >= -1_000_000n && argument.value <= 1_000_000n ? Number(argument.value) : undefined
  }

  while (at < format.length) {
    spend(unitsForVerb)
    const percent = format.indexOf('%', at)
    if (percent < 0) {
      result += format.slice(at)
      break
    }
    result += format.slice(at, percent)
    at = percent + 1
    badIndex = false

    const flags: Flags = {
      sharp: false,
      zero: false,
      plus: false,
      minus: false,
      space: false,
      sharpV: false,
      plusV: false,
    }
    for (let flag = flagNames[format[at] ?? '']; flag; flag = flagNames[format[at] ?? '']) {
      flags[flag] = true
      at++
    }

    let afterIndex = explicitIndex()
    if (format[at] === '*') {
      at++
      flags.width = starred()
      if (flags.width === undefined) result += '%!(BADWIDTH)'
      else if (flags.width < 0) Object.assign(flags, { width: -flags.width, minus: true, zero: false })
      afterIndex = false
    } else {
      flags.width = digits()
      if (afterIndex && flags.width !== undefined) badIndex = true
    }
    if (format[at] === '.') {
      at++
      if (afterIndex) badIndex = true
      afterIndex = explicitIndex()
      if (format[at] === '*') {
        at++
        const precision = starred()
        flags.precision = precision !== undefined && precision < 0 ? undefined : precision
        if (flags.precision === undefined) result += '%!(BADPREC)'
        afterIndex = false
      } else {
        flags.precision = digits() ?? 0
      }
    }
    if (!afterIndex) explicitIndex()

    const rune = format.codePointAt(at)
    if (rune === undefined) {
      result += '%!(NOVERB)'
      break
    }
    const verb = String.fromCodePoint(rune)
    at += verb.length
    const argument = args[next]
    if (verb === '%') result += '%'
    else if (badIndex) result += `%!${verb}(BADINDEX)`
    else if (argument === undefined) result += `%!${verb}(MISSING)`
    else {
      next++
      spend(costOf(argument, verb, flags))
      result += formatValue(argument, verb, verb === 'v' ? forV(flags) : flags)
    }
  }

  if (!reordered && next < args.length) {
    const rest = args.slice(next).map((value) => `${value.type}=${formatValue(value, 'v', plainFlags)}`)
    result += `%!(EXTRA ${rest.join(', ')})`
  }
  return result
}

const flagNames: Partial<Record<string, 'sharp' | 'zero' | 'plus' | 'minus' | 'space'>> = {
  '#': 'sharp',
  '0': 'zero',
  '+': 'plus',
  '-': 'minus',
  ' ': 'space',
}

const plainFlags: Flags = {
  sharp: false,
  zero: false,
  plus: false,
  minus: false,
  space: false,
  sharpV: false,
  plusV: false,
}

const forV = (flags: Flags): Flags => ({
  ...flags,
  sharpV: flags.sharp,
  sharp: false,
  plusV: flags.plus,
  plus: false,
})

/** `%v` without flags, as `fmt.Sprint` writes one value. */
export const display = (value: GoValue): string => formatValue(value, 'v', plainFlags)

const formatValue = (argument: GoValue, verb: string, flags: Flags): string => {
  if (verb === 'T') return formatText(argument.type, 's', flags)!
  if (isBig(argument)) return formatBigInteger(argument.value, verb, flags)
  const text = formatKind(argument, verb, flags)
  return text ?? `%!${verb}(${argument.type}=${formatValue(argument, 'v', flags)})`
}

const isBig = (argument: GoValue): argument is GoValue & { type: '*big.Int' } => argument.type === '*big.Int'

const formatKind = (argument: Exclude<GoValue, { type: '*big.Int' }>, verb: string, flags: Flags) => {
  if (argument.type === 'float64') return formatDouble(argument.value, verb, flags)
  if (argument.type === 'bool') return formatBoolean(argument.value, verb, flags)
  if (argument.type === 'string' || argument.type === 'json.Number') return formatText(argument.value, verb, flags)
  return formatInteger(argument.value as bigint, verb, flags)
}

const pad = (text: string, { width = 0, minus, zero }: Flags): string => {
  if (width === 0) return text
  const missing = width - characters(text)
  if (missing <= 0) return text
  return minus ? text + ' '.repeat(missing) : (zero ? '0' : ' ').repeat(missing) + text
}

const characters = (text: string): number => {
  let count = 0
  for (const _ of text) count++
  return count
}

const formatBoolean = (value: boolean, verb: string, flags: Flags): string | undefined =>
  verb === 't' || verb === 'v' ? pad(String(value), flags) : undefined

// --- texts

const formatText = (text: string, verb: string, flags: Flags): string | undefined => {
  if (verb === 'x' || verb === 'X') return hexText(text, verb, flags)
  const cut = flags.precision === undefined ? text : Array.from(text).slice(0, flags.precision).join('')
  if (verb === 's' || (verb === 'v' && !flags.sharpV)) return pad(cut, flags)
  if (verb !== 'q' && verb !== 'v') return undefined
  if (flags.sharp && canBackquote(cut)) return pad(`\`${cut}\``, flags)
  return pad(quote(cut, { asciiOnly: flags.plus }), flags)
}

const hexText = (text: string, verb: string, flags: Flags): string => {
  const bytes = [...Buffer.from(text)].slice(0, flags.precision)
  const prefix = flags.sharp ? '0x' : ''
  const pairs = bytes.map((byte) => byte.toString(16).padStart(2, '0'))
  const joined = flags.space
    ? pairs.map((pair) => prefix + pair).join(' ')
    : pairs.length > 0
      ? prefix + pairs.join('')
      : ''
  return pad(verb === 'X' ? joined.toUpperCase() : joined, flags)
}

// --- numbers

const bases: Partial<Record<string, number>> = { v: 10, d: 10, b: 2, o: 8, O: 8, x: 16, X: 16 }
const prefixes: Partial<Record<string, string>> = { b: '0b', x: '0x', X: '0X' }

const formatInteger = (value: bigint, verb: string, flags: Flags): string | undefined => {
  if (verb === 'c') return pad(characterOf(value), flags)
  if (verb === 'q') return pad(quote(characterOf(value), { mark: "'", asciiOnly: flags.plus }), flags)
  if (verb === 'U') return formatCodePoint(value, flags)
  const base = bases[verb]
  if (base === undefined) return undefined
  if (flags.precision === 0 && value === 0n) return ' '.repeat(flags.width ?? 0)

  const sign = value < 0n ? '-' : flags.plus ? '+' : flags.space ? ' ' : ''
  const least = flags.precision ?? (flags.zero && !flags.minus ? (flags.width ?? 0) - sign.length : 0)
  const magnitude = (value < 0n ? -value : value).toString(base)
  const digits = (verb === 'X' ? magnitude.toUpperCase() : magnitude).padStart(least, '0')
  const octal = verb === 'O' ? '0o' : ''
  const marked = flags.sharp ? (base === 8 ? (digits[0] === '0' ? '' : '0') : (prefixes[verb] ?? '')) : ''
  return pad(`${sign}${octal}${marked}${digits}`, { ...flags, zero: false })
}

const characterOf = (value: bigint): string =>
  value < 0n || value > 0x10ffffn || (value >= 0xd800n && value <= 0xdfffn)
    ? '\ufffd'
    : String.fromCodePoint(Number(value))

const formatCodePoint = (value: bigint, flags: Flags): string => {
  const digits = BigInt.asUintN(64, value)
    .toString(16)
    .toUpperCase()
    .padStart(Math.max(4, flags.precision ?? 0), '0')
  const character = characterOf(value)
  const shown = flags.sharp && value >= 0n && value <= 0x10ffffn && isPrintable(character) ? ` '${character}'` : ''
  return pad(`U+${digits}${shown}`, { ...flags, zero: false })
}

const formatBigInteger = (value: bigint, verb: string, flags: Flags): string => {
  const base = verb === 's' ? 10 : bases[verb]
  if (base === undefined) return `%!${verb}(big.Int=${value})`
  const sign = value < 0n ? '-' : flags.plus || flags.plusV ? '+' : flags.space ? ' ' : ''
  const prefix = verb === 'O' ? '0o' : flags.sharp ? (verb === 'o' ? '0' : (prefixes[verb] ?? '')) : ''
  const magnitude = (value < 0n ? -value : value).toString(base)
  const digits = (verb === 'X' ? magnitude.toUpperCase() : magnitude).padStart(flags.precision ?? 0, '0')
  const missing = Math.max((flags.width ?? 0) - sign.length - prefix.length - digits.length, 0)
  if (flags.minus) return `${sign}${prefix}${digits}${' '.repeat(missing)}`
  if (flags.zero && flags.precision === undefined) return `${sign}${prefix}${'0'.repeat(missing)}${digits}`
  return `${' '.repeat(missing)}${sign}${prefix}${digits}`
}

const formatDouble = (value: number, verb: string, flags: Flags): string | undefined => {
  if (!'vbgGxXfFeE'.includes(verb)) return undefined
  const style = verb === 'v' ? 'g' : verb === 'F' ? 'f' : verb
  const precision = flags.precision ?? ('feE'.includes(style) ? 6 : -1)
  const written = formatFloat(value, style, precision)
  const negative = written.startsWith('-')
  const unsigned = negative ? written.slice(1) : written
  const number = flags.sharp && style !== 'b' ? withPoint(unsigned, style, precision) : unsigned
  const sign = negative ? '-' : flags.plus ? '+' : flags.space ? ' ' : ''
  const width = flags.width ?? 0
  if (sign !== '' && flags.zero && !flags.minus && width > number.length + 1) {
    return sign + number.padStart(width - 1, '0')
  }
  return pad(sign + number, flags)
}

/** The flag `#`: always a decimal point, and with g and x trailing zeros up to the precision. */
const withPoint = (number: string, style: string, precision: number): string => {
  const exponent = number.search(style === 'x' || style === 'X' ? /[pP]/ : /[eE]/)
  const [mantissa, tail] = exponent < 0 ? [number, ''] : [number.slice(0, exponent), number.slice(exponent)]
  let missing = 'gGx'.includes(style) ? (precision === -1 ? 6 : precision) : 0
  missing -= mantissa.replace('.', '').replace(/^0+/, '').length
  if (mantissa.includes('.')) return mantissa + '0'.repeat(Math.max(missing, 0)) + tail
  if (mantissa === '0') missing--
  return `${mantissa}.${'0'.repeat(Math.max(missing, 0))}${tail}`
}
