/** Go's time layouts: the reference time (Mon Jan 2 15:04:05 MST 2006) shows what a text looks like. */

export const monthNames = 'January February March April May June July August September October November December'.split(
  ' ',
)
export const dayNames = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ')

/** An element of a layout, or text between them. */
export type Chunk = { kind: ChunkKind; digits?: number; text: string } | { kind: 'text'; text: string }

const elements = {
  longMonth: 'January',
  month: 'Jan',
  numMonth: '1',
  zeroMonth: '01',
  longWeekDay: 'Monday',
  weekDay: 'Mon',
  day: '2',
  underDay: '_2',
  zeroDay: '02',
  underYearDay: '__2',
  zeroYearDay: '002',
  hour: '15',
  hour12: '3',
  zeroHour12: '03',
  minute: '4',
  zeroMinute: '04',
  second: '5',
  zeroSecond: '05',
  longYear: '2006',
  year: '06',
  upperPm: 'PM',
  lowerPm: 'pm',
  zoneName: 'MST',
  isoSeconds: 'Z070000',
  isoColonSeconds: 'Z07:00:00',
  iso: 'Z0700',
  isoColon: 'Z07:00',
  isoShort: 'Z07',
  numSeconds: '-070000',
  numColonSeconds: '-07:00:00',
  num: '-0700',
  numColon: '-07:00',
  numShort: '-07',
} as const

export type ChunkKind = keyof typeof elements | 'fraction0' | 'fraction9'

/** By their first character, longer ones first: `2006` before `2`. */
const byStart = Map.groupBy(
  (Object.entries(elements) as [keyof typeof elements, string][]).sort(([, a], [, b]) => b.length - a.length),
  ([, text]) => text[0],
)

const isDigit = (character: string | undefined): boolean =>
  character !== undefined && character >= '0' && character <= '9'

const elementAt = (layout: string, at: number): { kind: ChunkKind; text: string; digits?: number } | undefined => {
  const [first, digit] = [layout[at], layout[at + 1]]
  if ((first === '.' || first === ',') && (digit === '0' || digit === '9')) {
    let end = at + 1
    while (layout[end] === digit) end++
    if (isDigit(layout[end])) return undefined
    return { kind: digit === '0' ? 'fraction0' : 'fraction9', text: layout.slice(at, end), digits: end - at - 1 }
  }
  // An underscore before a year is just that.
  if (layout.startsWith('_2006', at)) return undefined
  for (const [kind, text] of byStart.get(first) ?? []) {
    if (!layout.startsWith(text, at)) continue
    const next = layout[at + text.length]
    if ((kind === 'month' || kind === 'weekDay') && next !== undefined && next >= 'a' && next <= 'z') continue
    return { kind, text }
  }
  return undefined
}

export const chunksOf = (layout: string): Chunk[] => {
  const chunks: Chunk[] = []
  let text = ''
  for (let at = 0; at < layout.length; ) {
    const element = elementAt(layout, at)
    if (!element) {
      text += layout[at++]
      continue
    }
    if (text !== '') chunks.push({ kind: 'text', text })
    text = ''
    chunks.push(element)
    at += element.text.length
  }
  if (text !== '') chunks.push({ kind: 'text', text })
  return chunks
}

// --- calendar

/**
 * Milliseconds since 1970 of a date in UTC; months and days beyond their range carry over. NaN outside of ±275 000
 * years.
 */
export const utcMilliseconds = (year: number, month: number, day: number, hour = 0, minute = 0, second = 0): number => {
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  return date.setUTCHours(hour, minute, second, 0)
}

export const isLeapYear = (year: number): boolean => (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0

/** `month` counts from 1. */
export const daysInMonth = (year: number, month: number): number =>
  month === 2 ? (isLeapYear(year) ? 29 : 28) : [4, 6, 9, 11].includes(month) ? 30 : 31

/** A moment as a clock on the wall shows it. */
export interface WallTime {
  year: number
  /** From 1. */
  month: number
  day: number
  /** From 0 = Sunday. */
  weekDay: number
  yearDay: number
  hour: number
  minute: number
  second: number
  nanosecond: number
  /** Seconds east of Greenwich. */
  offset: number
  /** Such as CET; empty when only the offset is known. */
  zone: string
}

// --- writing

const two = (number: number): string => String(number).padStart(2, '0')

const zoneOffset = (offset: number, { colon = false, minutes = true, seconds = false }): string => {
  // Go takes the sign from the whole minutes.
  const negative = Math.trunc(offset / 60) < 0
  const rest = negative ? -offset : offset
  const separator = colon ? ':' : ''
  const parts = [
    Math.trunc(rest / 3600),
    ...(minutes ? [Math.trunc(rest / 60) % 60] : []),
    ...(seconds ? [rest % 60] : []),
  ]
  return (negative ? '-' : '+') + parts.map(two).join(separator)
}

const zoneForms: Partial<Record<ChunkKind, Parameters<typeof zoneOffset>[1]>> = {
  isoSeconds: { seconds: true },
  isoColonSeconds: { colon: true, seconds: true },
  iso: {},
  isoColon: { colon: true },
  isoShort: { minutes: false },
  numSeconds: { seconds: true },
  numColonSeconds: { colon: true, seconds: true },
  num: {},
  numColon: { colon: true },
  numShort: { minutes: false },
}

const hour12 = ({ hour }: WallTime): number => hour % 12 || 12

const monthName = ({ month }: WallTime): string => monthNames[month - 1]!

export const dayName = ({ weekDay }: WallTime): string => dayNames[weekDay]!

const writers: Partial<Record<ChunkKind, (time: WallTime) => string>> = {
  longMonth: monthName,
  month: (time) => monthName(time).slice(0, 3),
  numMonth: ({ month }) => String(month),
  zeroMonth: ({ month }) => two(month),
  longWeekDay: dayName,
  weekDay: (time) => dayName(time).slice(0, 3),
  day: ({ day }) => String(day),
  underDay: ({ day }) => String(day).padStart(2, ' '),
  zeroDay: ({ day }) => two(day),
  underYearDay: ({ yearDay }) => String(yearDay).padStart(3, ' '),
  zeroYearDay: ({ yearDay }) => String(yearDay).padStart(3, '0'),
  hour: ({ hour }) => two(hour),
  hour12: (time) => String(hour12(time)),
  zeroHour12: (time) => two(hour12(time)),
  minute: ({ minute }) => String(minute),
  zeroMinute: ({ minute }) => two(minute),
  second: ({ second }) => String(second),
  zeroSecond: ({ second }) => two(second),
  longYear: ({ year }) => String(year).padStart(4, '0'),
  year: ({ year }) => two(year % 100),
  upperPm: ({ hour }) => (hour >= 12 ? 'PM' : 'AM'),
  lowerPm: ({ hour }) => (hour >= 12 ? 'pm' : 'am'),
  zoneName: ({ zone, offset }) => zone || zoneOffset(offset, { minutes: offset % 3600 !== 0 }),
}

const fraction = ({ nanosecond }: WallTime, kind: ChunkKind, text: string, digits: number): string => {
  const all = String(nanosecond).padStart(9, '0').slice(0, digits)
  const shown = kind === 'fraction9' ? all.replace(/0+$/, '') : all
  return shown === '' ? '' : text[0] + shown
}

export const formatTime = (time: WallTime, layout: string): string =>
  chunksOf(layout)
    .map((chunk) => {
      if (chunk.kind === 'text') return chunk.text
      if (chunk.digits !== undefined) return fraction(time, chunk.kind, chunk.text, chunk.digits)
      const zone = zoneForms[chunk.kind]
      if (!zone) return writers[chunk.kind]!(time)
      return chunk.kind.startsWith('iso') && time.offset === 0 ? 'Z' : zoneOffset(time.offset, zone)
    })
    .join('')
