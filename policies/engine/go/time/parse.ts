import { type ChunkKind, chunksOf, dayNames, daysInMonth, isLeapYear, monthNames, utcMilliseconds } from './layout.ts'

/**
 * `time.Parse`: the moment in nanoseconds since 1970 (any size), or `undefined` when the text does not fit the layout.
 */
export const parseTime = (layout: string, text: string): bigint | undefined => {
  const chunks = chunksOf(layout)
  const reading: Reading = { rest: text, offset: 0, nanosecond: 0 }
  for (const [index, chunk] of chunks.entries()) {
    const isRead =
      chunk.kind === 'text'
        ? skip(reading, chunk.text)
        : read(reading, chunk.kind, chunk.digits ?? 0, chunks[index + 1]?.kind)
    if (!isRead) return undefined
  }
  return reading.rest === '' ? moment(reading) : undefined
}

interface Reading {
  rest: string
  year?: number
  month?: number
  day?: number
  yearDay?: number
  hour?: number
  minute?: number
  second?: number
  afternoon?: boolean
  nanosecond: number
  offset: number
}

const moment = (reading: Reading): bigint | undefined => {
  const { year = 0, minute = 0, second = 0, nanosecond, offset, afternoon } = reading
  let { month, day, hour = 0 } = reading
  if (afternoon === true && hour < 12) hour += 12
  if (afternoon === false && hour === 12) hour = 0
  if (reading.yearDay !== undefined) {
    const date = dateOfYearDay(year, reading.yearDay)
    if (!date || (month ?? date.month) !== date.month || (day ?? date.day) !== date.day) return undefined
    month = date.month
    day = date.day
  }
  month ??= 1
  day ??= 1
  if (day < 1 || day > daysInMonth(year, month)) return undefined
  const seconds = utcMilliseconds(year, month, day, hour, minute, second) / 1000 - offset
  return BigInt(seconds) * 1_000_000_000n + BigInt(nanosecond)
}

const dateOfYearDay = (year: number, yearDay: number): { month: number; day: number } | undefined => {
  if (yearDay < 1 || yearDay > (isLeapYear(year) ? 366 : 365)) return undefined
  const date = new Date(utcMilliseconds(year, 1, yearDay))
  return { month: date.getUTCMonth() + 1, day: date.getUTCDate() }
}

/** A space in a layout stands for any number of spaces, none only at the end of the text. */
const skip = (reading: Reading, text: string): boolean => {
  for (const part of text.match(/ +|[^ ]+/g) ?? []) {
    const { rest } = reading
    if (part[0] === ' ') {
      if (rest !== '' && rest[0] !== ' ') return false
      reading.rest = rest.replace(/^ +/, '')
    } else {
      if (!rest.startsWith(part)) return false
      reading.rest = rest.slice(part.length)
    }
  }
  return true
}

/** What matches at the beginning of the rest, taken off it. */
const take = (reading: Reading, pattern: RegExp): string | undefined => {
  const found = pattern.exec(reading.rest)?.[0]
  if (found !== undefined) reading.rest = reading.rest.slice(found.length)
  return found
}

type Numeric = 'year' | 'month' | 'day' | 'yearDay' | 'hour' | 'minute' | 'second'

const takeNumber = (reading: Reading, into: Numeric, pattern: RegExp, low: number, high: number): boolean => {
  const number = Number(take(reading, pattern) ?? Number.NaN)
  if (!(number >= low && number <= high)) return false
  reading[into] = number
  return true
}

const takeName = (reading: Reading, names: readonly string[]): number | undefined => {
  const rest = reading.rest.slice(0, longestName).toLowerCase()
  for (const [index, name] of names.entries()) {
    if (!rest.startsWith(name.toLowerCase())) continue
    reading.rest = reading.rest.slice(name.length)
    return index + 1
  }
  return undefined
}

/** Wednesday and September. */
const longestName = 9

const short = (names: readonly string[]): string[] => names.map((name) => name.slice(0, 3))

const oneOrTwo = /^\d\d?/
const exactlyTwo = /^\d\d/

const monthFrom =
  (names: readonly string[]) =>
  (reading: Reading): boolean => {
    const month = takeName(reading, names)
    if (month === undefined) return false
    reading.month = month
    return true
  }

const half =
  (after: string, before: string) =>
  (reading: Reading): boolean => {
    const found = take(reading, new RegExp(`^(?:${after}|${before})`))
    if (found === undefined) return false
    reading.afternoon = found === after
    return true
  }

/** Nine digits count; Go reads at most so many and drops the others. */
const nanoseconds = (digits: string): number => Number(digits.slice(0, 9).padEnd(9, '0'))

const takeSecond = (reading: Reading, pattern: RegExp, next: ChunkKind | 'text' | undefined): boolean => {
  if (!takeNumber(reading, 'second', pattern, 0, 59)) return false
  if (next === 'fraction0' || next === 'fraction9') return true
  // A fraction that the layout does not mention is taken too.
  const found = take(reading, /^[.,]\d+/)
  if (found) reading.nanosecond = nanoseconds(found.slice(1))
  return true
}

const takeOffset = (reading: Reading, pattern: RegExp): boolean => {
  const found = take(reading, pattern)
  if (found === undefined) return false
  const [hours = 0, minutes = 0, seconds = 0] = (found.slice(1).match(/\d\d/g) ?? []).map(Number)
  // Go allows 24 and 60 here, since some people write them.
  if (hours > 24 || minutes > 60 || seconds > 60) return false
  reading.offset = (found[0] === '-' ? -1 : 1) * ((hours * 60 + minutes) * 60 + seconds)
  return true
}

const offsetPatterns: Partial<Record<ChunkKind, RegExp>> = {
  isoSeconds: /^[+-]\d{6}/,
  isoColonSeconds: /^[+-]\d\d:\d\d:\d\d/,
  iso: /^[+-]\d{4}/,
  isoColon: /^[+-]\d\d:\d\d/,
  isoShort: /^[+-]\d\d/,
  numSeconds: /^[+-]\d{6}/,
  numColonSeconds: /^[+-]\d\d:\d\d:\d\d/,
  num: /^[+-]\d{4}/,
  numColon: /^[+-]\d\d:\d\d/,
  numShort: /^[+-]\d\d/,
}

/**
 * A name says nothing about the offset unless the machine happens to know it; like OPA, which runs in UTC, it counts as
 * UTC.
 */
const zoneName =
  /^(?:ChST|MeST|GMT(?:[+-](?:1?\d|2[0-3])(?!\d))?|[+-](?:0?\d|1\d|2[0-3])(?!\d)|(?:[A-Z]{4}T|[A-Z]{3}T|WITA|[A-Z]{3})(?![A-Z]))/

const readers: Partial<Record<ChunkKind, (reading: Reading, next: ChunkKind | 'text' | undefined) => boolean>> = {
  year: (reading) => {
    const found = take(reading, exactlyTwo)
    if (found === undefined) return false
    reading.year = Number(found) + (Number(found) >= 69 ? 1900 : 2000)
    return true
  },
  longYear: (reading) => takeNumber(reading, 'year', /^\d{4}/, 0, 9999),
  month: monthFrom(short(monthNames)),
  longMonth: monthFrom(monthNames),
  numMonth: (reading) => takeNumber(reading, 'month', oneOrTwo, 1, 12),
  zeroMonth: (reading) => takeNumber(reading, 'month', exactlyTwo, 1, 12),
  weekDay: (reading) => takeName(reading, short(dayNames)) !== undefined,
  longWeekDay: (reading) => takeName(reading, dayNames) !== undefined,
  day: (reading) => takeNumber(reading, 'day', oneOrTwo, 0, 99),
  underDay: (reading) => takeNumber(reading, 'day', /^ ?\d\d?/, 0, 99),
  zeroDay: (reading) => takeNumber(reading, 'day', exactlyTwo, 0, 99),
  underYearDay: (reading) => takeNumber(reading, 'yearDay', /^ {0,2}\d{1,3}/, 0, 999),
  zeroYearDay: (reading) => takeNumber(reading, 'yearDay', /^\d{3}/, 0, 999),
  hour: (reading) => takeNumber(reading, 'hour', oneOrTwo, 0, 23),
  hour12: (reading) => takeNumber(reading, 'hour', oneOrTwo, 0, 12),
  zeroHour12: (reading) => takeNumber(reading, 'hour', exactlyTwo, 0, 12),
  minute: (reading) => takeNumber(reading, 'minute', oneOrTwo, 0, 59),
  zeroMinute: (reading) => takeNumber(reading, 'minute', exactlyTwo, 0, 59),
  second: (reading, next) => takeSecond(reading, oneOrTwo, next),
  zeroSecond: (reading, next) => takeSecond(reading, exactlyTwo, next),
  upperPm: half('PM', 'AM'),
  lowerPm: half('pm', 'am'),
  zoneName: (reading) => take(reading, /^UTC/) !== undefined || take(reading, zoneName) !== undefined,
  fraction9: (reading) => {
    const found = take(reading, /^[.,]\d+/)
    if (found) reading.nanosecond = nanoseconds(found.slice(1))
    return true
  },
}

const read = (reading: Reading, kind: ChunkKind, digits: number, next: ChunkKind | 'text' | undefined): boolean => {
  if (kind === 'fraction0') {
    const found = reading.rest.slice(0, digits + 1)
    if (found.length <= digits || !/^[.,]\d+$/.test(found)) return false
    reading.rest = reading.rest.slice(digits + 1)
    reading.nanosecond = nanoseconds(found.slice(1))
    return true
  }
  const offset = offsetPatterns[kind]
  if (!offset) return readers[kind]!(reading, next)
  return (kind.startsWith('iso') && take(reading, /^Z/) !== undefined) || takeOffset(reading, offset)
}
