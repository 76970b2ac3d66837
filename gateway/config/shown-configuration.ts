import { Secret } from '../../platform/secret.ts'
import type { GatewayFile } from './settings/file.ts'
import { isCredentialHeader } from './settings/values.ts'
import type { YamlFile } from './yaml-file.ts'

const redacted = '[redacted]'

/**
 * The configuration as it runs, for people who may read it and learn no secret from it: what came from the environment
 * stands as `${NAME}`, secrets as `[redacted]`. Where it cannot be told which of both a value is, it is redacted.
 */
export const shownConfiguration = (
  parsed: GatewayFile,
  { value, written }: Pick<YamlFile, 'value' | 'written'>,
): Record<string, unknown> => show(parsed, value, written) as Record<string, unknown>

/** `value` and `written` are the member of the file, with and without the environment's values. */
const show = (parsed: unknown, value: unknown, written: unknown, areFields = false): unknown => {
  if (parsed instanceof Secret) return redacted
  if (Array.isArray(parsed)) return showList(parsed, value, written)
  if (isRecord(parsed)) return showRecord(parsed, value, written, areFields)
  if (!isSame(value, written)) return typeof written === 'string' ? written : redacted
  return typeof parsed === 'string' ? withoutCredentials(parsed) : parsed
}

const showList = (parsed: readonly unknown[], value: unknown, written: unknown): unknown => {
  if (isSame(value, written)) return parsed.map((item) => show(item, undefined, undefined))
  if (!Array.isArray(value) || !Array.isArray(written) || value.length !== parsed.length) {
    return typeof written === 'string' ? written : redacted
  }
  return parsed.map((item, index) => show(item, value[index], written[index]))
}

/** @param areFields whether the members are header fields. */
const showRecord = (parsed: Record<string, unknown>, value: unknown, written: unknown, areFields: boolean): unknown => {
  const same = isSame(value, written)
  if (!same && !(isRecord(value) && isRecord(written))) return typeof written === 'string' ? written : redacted
  const [given, named] = same ? [{}, {}] : [value as Record<string, unknown>, written as Record<string, unknown>]
  // A name that is spelt differently in what was read (a header's): its value may be any of those without a name.
  const isLost = Object.keys(given).some((name) => !Object.hasOwn(parsed, name) && !isSame(given[name], named[name]))
  return Object.fromEntries(
    Object.entries(parsed)
      .filter(([, member]) => member !== undefined)
      .map(([name, member]) => {
        if (areFields && (name === 'set-cookie' || isCredentialHeader(name))) return [name, redacted]
        if (isLost && !Object.hasOwn(given, name)) return [name, redacted]
        return [name, show(member, given[name], named[name], name === 'set')]
      }),
  )
}

/** An address without user, password and query. */
const withoutCredentials = (text: string): string => {
  if (!text.includes('://') || !URL.canParse(text)) return text
  const url = new URL(text)
  if (url.username === '' && url.password === '' && url.search === '') return text
  return `${url.protocol}//${url.host}${url.pathname}?${redacted}`
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Secret)

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)
