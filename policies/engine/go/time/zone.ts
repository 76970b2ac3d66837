import { utcMilliseconds } from './layout.ts'

/** Offsets come from the ICU of the runtime, which knows every zone of the IANA database on every machine. */

const formats = new Map<string, Intl.DateTimeFormat>()
/** There are about 600 names; ICU, which takes any case, must not be made to remember more. */
const mostZones = 1_000

/** Texts that name no zone are not kept: callers may send any. */
const formatOf = (zone: string): Intl.DateTimeFormat | undefined => {
  const known = formats.get(zone)
  if (known) return known
  if (formats.size >= mostZones) for (const map of [formats, latest, names]) map.clear()
  const format = tryFormat(zone)
  if (format) formats.set(zone, format)
  return format
}

/**
 * ICU takes any case and `+02:00`; Go knows zones only by their names, as far as their spelling shows: `EUROPE` and
 * `Est` are none.
 */
const isSpeltRight = (zone: string): boolean =>
  /^(?:[A-Z][A-Za-z0-9_+-]*)(?:\/[A-Z][A-Za-z0-9_+-]*)*$/.test(zone) &&
  !/(?:^|\/)[A-Z]{5,}|^[A-Z](?:[a-z][A-Za-z]|[A-Z][a-z])$/.test(zone)

const tryFormat = (zone: string): Intl.DateTimeFormat | undefined => {
  if (!isSpeltRight(zone) || zone.length > 64) return undefined
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      era: 'short',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  } catch {
    return undefined
  }
}

/**
 * The quarter of an hour that was asked for last, by zone: rules nearly always ask for the present. Seconds since 1970.
 */
const latest = new Map<string, { from: number; offset: number }>()
const quarter = 900

/** Seconds east of Greenwich at a moment (seconds since 1970), or `undefined` for an unknown zone. */
export const offsetAt = (zone: string, seconds: number): number | undefined => {
  const known = latest.get(zone)
  if (known && seconds >= known.from && seconds < known.from + quarter) return known.offset
  const format = formatOf(zone)
  if (!format) return undefined
  const from = Math.floor(seconds / quarter) * quarter
  const offset = askOffset(format, from)
  // A change within the quarter (there were some, long ago) is not remembered.
  if (offset !== askOffset(format, from + quarter - 1)) return askOffset(format, seconds)
  latest.set(zone, { from, offset })
  return offset
}

const askOffset = (format: Intl.DateTimeFormat, seconds: number): number => {
  const parts: Partial<Record<Intl.DateTimeFormatPartTypes, string>> = {}
  for (const { type, value } of format.formatToParts(seconds * 1000)) parts[type] = value
  const part = (type: Intl.DateTimeFormatPartTypes) => Number(parts[type])
  const [year, month, day] = [part('year'), part('month'), part('day')]
  return utcMilliseconds(year, month, day, part('hour'), part('minute'), part('second')) / 1000 - seconds
}

/** Abbreviations that ICU does not tell in any English; standard and summer time. */
const abbreviations: Record<string, readonly [string, string?]> = {
  'Asia/Tokyo': ['JST'],
  'Asia/Seoul': ['KST'],
  'Asia/Shanghai': ['CST'],
  'Asia/Taipei': ['CST'],
  'Asia/Macau': ['CST'],
  'Asia/Hong_Kong': ['HKT'],
  'Asia/Kolkata': ['IST'],
  'Asia/Calcutta': ['IST'],
  'Asia/Karachi': ['PKT'],
  'Asia/Manila': ['PST'],
  'Asia/Jakarta': ['WIB'],
  'Asia/Makassar': ['WITA'],
  'Asia/Jayapura': ['WIT'],
  'Asia/Jerusalem': ['IST', 'IDT'],
  'Asia/Tel_Aviv': ['IST', 'IDT'],
  'Asia/Beirut': ['EET', 'EEST'],
  'Africa/Johannesburg': ['SAST'],
  'Africa/Lagos': ['WAT'],
  'Africa/Nairobi': ['EAT'],
  'Africa/Cairo': ['EET', 'EEST'],
  'Europe/Dublin': ['GMT', 'IST'],
  'Europe/Moscow': ['MSK'],
  'Europe/Simferopol': ['MSK'],
  'Pacific/Auckland': ['NZST', 'NZDT'],
  'Pacific/Guam': ['ChST'],
  'Pacific/Honolulu': ['HST'],
  EST: ['EST'],
  MST: ['MST'],
  HST: ['HST'],
}

const locales = ['en-US', 'en-GB', 'en-AU', 'en-CA', 'en-NZ', 'en-ZA']
const names = new Map<string, readonly Intl.DateTimeFormat[]>()

/** `CET`, `EDT`; empty where the zone has only an offset. */
export const abbreviationAt = (zone: string, seconds: number, offset: number): string => {
  const known = abbreviations[zone]
  if (known) return (known[1] && offset > januaryAndJuly(zone, seconds).low ? known[1] : known[0]) ?? ''
  // Elsewhere ICU has names (GST for Dubai) that the IANA database has not.
  if (!/^(?:America|Arctic|Atlantic|Australia|Canada|Europe|US)\/|^[A-Z0-9]+$/.test(zone)) return ''
  let formatters = names.get(zone)
  if (!formatters) {
    formatters = locales.map((locale) => new Intl.DateTimeFormat(locale, { timeZone: zone, timeZoneName: 'short' }))
    names.set(zone, formatters)
  }
  for (const formatter of formatters) {
    const name = formatter.formatToParts(seconds * 1000).find(({ type }) => type === 'timeZoneName')?.value ?? ''
    if (/^[A-Z]{3,5}$/.test(name)) return name
  }
  return ''
}

/** The lower of a year's offsets is its standard time, on either half of the Earth. */
const januaryAndJuly = (zone: string, seconds: number): { low: number } => {
  const year = new Date(seconds * 1000).getUTCFullYear()
  const offsets = [1, 7].map((month) => offsetAt(zone, utcMilliseconds(year, month, 1) / 1000)!)
  return { low: Math.min(...offsets) }
}
