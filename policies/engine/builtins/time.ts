import type { Meter } from '../base/meter.ts'
import { parseDuration } from '../go/time/duration.ts'
import { dayName, formatTime, utcMilliseconds, type WallTime } from '../go/time/layout.ts'
import { parseTime } from '../go/time/parse.ts'
import { abbreviationAt, offsetAt } from '../go/time/zone.ts'
import { asInt64, asInteger, asString, refuse } from '../values/operands.ts'
import { integerOf, type Value } from '../values/value.ts'
import { type BuiltinTable, builtin } from './builtin.ts'

const second = 1_000_000_000n

const rfc3339 = '2006-01-02T15:04:05Z07:00'

/** Layouts that OPA knows by name. */
const layouts: Record<string, string> = {
  ANSIC: 'Mon Jan _2 15:04:05 2006',
  UnixDate: 'Mon Jan _2 15:04:05 MST 2006',
  RubyDate: 'Mon Jan 02 15:04:05 -0700 2006',
  RFC822: '02 Jan 06 15:04 MST',
  RFC822Z: '02 Jan 06 15:04 -0700',
  RFC850: 'Monday, 02-Jan-06 15:04:05 MST',
  RFC1123: 'Mon, 02 Jan 2006 15:04:05 MST',
  RFC1123Z: 'Mon, 02 Jan 2006 15:04:05 -0700',
  RFC3339: rfc3339,
  RFC3339Nano: '2006-01-02T15:04:05.999999999Z07:00',
}

const layoutOf = (name: string): string => layouts[name] ?? name

interface Moment {
  ns: bigint
  zone: string
  layout?: string
}

/** Nanoseconds, `[nanoseconds, zone]`, or with a layout as third. An empty zone is UTC, `Local` that of the machine. */
const readMoment = (value: Value | undefined, { layout }: { layout: boolean }): Moment => {
  if (!Array.isArray(value)) return { ns: asInt64(value), zone: 'UTC' }
  if (value.length < 2 || value.length > (layout ? 3 : 2)) refuse('operand must be [nanoseconds, time zone]')
  const [ns, zone, form] = value
  return { ns: asInt64(ns), zone: zoneOf(asString(zone)), ...(form !== undefined && { layout: asString(form) }) }
}

const asMoment = (value: Value | undefined): Moment => readMoment(value, { layout: false })

const asMomentWithLayout = (value: Value | undefined): Moment => readMoment(value, { layout: true })

const zoneOf = (name: string): string => {
  if (name === '') return 'UTC'
  return name === 'Local' ? Intl.DateTimeFormat().resolvedOptions().timeZone : name
}

/** To ask the ICU for a zone's offset, its name at first, and for how a moment is written in it. */
const unitsForOffset = 500
const unitsForZone = 10_000
const unitsForNames = 40_000

const payForZone = (zone: string, { spend, spendOnce }: Meter, { named = false } = {}): void => {
  if (zone === 'UTC') return
  spendOnce(`time zone ${zone}`, unitsForZone)
  if (named) spendOnce(`names of time zone ${zone}`, unitsForNames)
  spend(unitsForOffset)
}

/** Of a layout or what is read by it. */
const unitsForCharacter = 10

const floorDivide = (a: bigint, b: bigint): bigint => (a % b < 0n ? a / b - 1n : a / b)

const wallTime = ({ ns, zone }: Moment, meter: Meter, { named = false } = {}): WallTime => {
  payForZone(zone, meter, { named })
  const seconds = Number(floorDivide(ns, second))
  const offset = zone === 'UTC' ? 0 : (offsetAt(zone, seconds) ?? refuse(`unknown time zone ${zone}`))
  const local = new Date((seconds + offset) * 1000)
  const year = local.getUTCFullYear()
  return {
    year,
    month: local.getUTCMonth() + 1,
    day: local.getUTCDate(),
    weekDay: local.getUTCDay(),
    yearDay:
      (utcMilliseconds(year, local.getUTCMonth() + 1, local.getUTCDate()) - utcMilliseconds(year, 1, 1)) / 86_400_000 +
      1,
    hour: local.getUTCHours(),
    minute: local.getUTCMinutes(),
    second: local.getUTCSeconds(),
    nanosecond: Number(ns - BigInt(seconds) * second),
    offset,
    zone: zone === 'UTC' ? 'UTC' : named ? abbreviationAt(zone, seconds, offset) : '',
  }
}

/** OPA's moments fit 64 bits: 1677 to 2262. */
const inRange = (ns: bigint | undefined): Value => {
  if (ns === undefined) return refuse('the text is not a time of this layout')
  return BigInt.asIntN(64, ns) === ns ? integerOf(ns) : refuse('time outside of valid range')
}

const addDate = (ns: bigint, years: bigint, months: bigint, days: bigint, meter: Meter): bigint => {
  const { year, month, day, hour, minute, second: seconds, nanosecond } = wallTime({ ns, zone: 'UTC' }, meter)
  const milliseconds = utcMilliseconds(
    year + Number(years),
    month + Number(months),
    day + Number(days),
    hour,
    minute,
    seconds,
  )
  if (Number.isNaN(milliseconds)) refuse('time outside of valid range')
  return BigInt(milliseconds) * 1_000_000n + BigInt(nanosecond)
}

/** Years, months, days, hours, minutes and seconds between two moments on the wall clock of the first one's zone. */
const difference = (first: Moment, other: Moment, meter: Meter): number[] => {
  const second = { ns: other.ns, zone: first.zone }
  wallTime(other, meter)
  const [earlier, later] = first.ns > second.ns ? [second, first] : [first, second]
  const from = wallTime(earlier, meter)
  const to = wallTime(later, meter)
  let years = to.year - from.year
  let months = to.month - from.month
  let days = to.day - from.day
  let hours = to.hour - from.hour
  let minutes = to.minute - from.minute
  let seconds = to.second - from.second
  if (seconds < 0) {
    seconds += 60
    minutes--
  }
  if (minutes < 0) {
    minutes += 60
    hours--
  }
  if (hours < 0) {
    hours += 24
    days--
  }
  if (days < 0) {
    days += 32 - new Date(utcMilliseconds(from.year, from.month, 32)).getUTCDate()
    months--
  }
  if (months < 0) {
    months += 12
    years--
  }
  return [years, months, days, hours, minutes, seconds]
}

const format = (moment: Moment, meter: Meter): string => {
  const layout = layoutOf(moment.layout || 'RFC3339Nano')
  meter.spend(unitsForCharacter * layout.length)
  return formatTime(wallTime(moment, meter, { named: layout.includes('MST') }), layout)
}

export const timeBuiltins: BuiltinTable = {
  'time.add_date': builtin([asInt64, asInteger, asInteger, asInteger], (ns, years, months, days, meter) =>
    inRange(addDate(ns, years, months, days, meter)),
  ),
  'time.clock': builtin([asMoment], (moment, meter) => {
    const { hour, minute, second: seconds } = wallTime(moment, meter)
    return [hour, minute, seconds]
  }),
  'time.date': builtin([asMoment], (moment, meter) => {
    const { year, month, day } = wallTime(moment, meter)
    return [year, month, day]
  }),
  'time.diff': builtin([asMoment, asMoment], difference),
  'time.format': builtin([asMomentWithLayout], format),
  'time.now_ns': builtin([], ({ nowNs }) => integerOf(nowNs())),
  'time.parse_duration_ns': builtin([asString], (text, { spend }) => {
    spend(unitsForCharacter * text.length)
    return inRange(parseDuration(text) ?? refuse('not a duration'))
  }),
  'time.parse_ns': builtin([asString, asString], (layout, text, { spend }) => {
    spend(unitsForCharacter * (layout.length + text.length))
    return inRange(parseTime(layoutOf(layout), text))
  }),
  'time.parse_rfc3339_ns': builtin([asString], (text) => inRange(parseTime(rfc3339, text))),
  'time.weekday': builtin([asMoment], (moment, meter) => dayName(wallTime(moment, meter))),
}
