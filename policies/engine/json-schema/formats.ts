import { isIPv4, isIPv6 } from 'node:net'
import { isLeapYear } from '../go/time/layout.ts'
import { parseTime } from '../go/time/parse.ts'
import { parseUrl } from '../go/url.ts'
import { unlessRefused } from '../values/operands.ts'

const label = '[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?'
const patterns = {
  hostname: new RegExp(`^${label}(?:\\.${label})*$`),
  uuid: /^(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$/i,
  'json-pointer': /^(?:\/(?:[^~/]|~0|~1)*)*$/,
  'relative-json-pointer': /^(?:0|[1-9]\d*)(?:#|(?:\/(?:[^~/]|~0|~1)*)*)$/,
  'uri-template': /^(?:[^\s{}]|\{[^\s{}]+\})*$/,
  email: /^[^\s@<>"(),:;[\]\\]+@[^\s@<>"(),:;[\]\\]+$/,
}

const test =
  (pattern: RegExp) =>
  (text: string): boolean =>
    pattern.test(text)

const isTime =
  (...layouts: string[]) =>
  (text: string) =>
    layouts.some((layout) => parseTime(layout, text) !== undefined)

const isUri = (text: string): boolean => (schemeOf(text) ?? '') !== '' && !text.includes('\\')

const isReference = (text: string): boolean => schemeOf(text) !== undefined && !text.includes('\\')

/** `undefined` for what is no URL at all. */
const schemeOf = (text: string): string | undefined => unlessRefused(() => parseUrl(text))?.scheme

const isRegex = (text: string): boolean => {
  try {
    new RegExp(text)
    return true
  } catch {
    return false
  }
}

const isDate = (text: string): boolean => {
  const [, year, month, day] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text) ?? []
  if (year === undefined) return false
  const last = [31, isLeapYear(Number(year)) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][Number(month) - 1] ?? 0
  return Number(day) >= 1 && Number(day) <= last
}

const formats: Record<string, (text: string) => boolean> = {
  date: isDate,
  time: isTime('15:04:05', '15:04:05Z07:00'),
  'date-time': isTime('15:04:05', '15:04:05Z07:00', '2006-01-02', '2006-01-02T15:04:05Z07:00'),
  hostname: (text) => text.length < 256 && patterns.hostname.test(text),
  email: test(patterns.email),
  'idn-email': test(patterns.email),
  ipv4: isIPv4,
  ipv6: (text) => isIPv6(text) && !text.includes('%'),
  uri: isUri,
  iri: isUri,
  'uri-reference': isReference,
  'iri-reference': isReference,
  'uri-template': (text) => patterns['uri-template'].test(text),
  uuid: test(patterns.uuid),
  regex: isRegex,
  'json-pointer': test(patterns['json-pointer']),
  'relative-json-pointer': test(patterns['relative-json-pointer']),
}

/** A format that is not known says nothing. */
export const fitsFormat = (name: string, text: string): boolean => {
  const fits = Object.hasOwn(formats, name) ? formats[name] : undefined
  return fits === undefined || fits(text)
}
