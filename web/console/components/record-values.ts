import { type Draft, type Field, isSecret } from './field.ts'

/** Between a record, which is nested, and the fields of a form, which are flat. */

export const valueAt = (record: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((value, name) => Object(value)[name], record)

export const same = (one: unknown, other: unknown): boolean =>
  JSON.stringify(one ?? null) === JSON.stringify(other ?? null)

/** The values of all fields: as typed, else as in the record. */
export const valuesOf = (fields: readonly Field[], record: unknown, draft: Draft): Draft =>
  Object.fromEntries(fields.map(({ path }) => [path, path in draft ? draft[path] : valueAt(record, path)]))

/** What is typed and differs. An empty text and nothing are the same. */
export const changedFields = (fields: readonly Field[], record: unknown, draft: Draft): Field[] =>
  fields.filter(({ path }) => path in draft && !same(draft[path] || null, valueAt(record, path) || null))

/** The body of a change: objects are replaced as a whole, so each changed one is sent whole. */
export const changeOf = (changed: readonly Field[], record: unknown, draft: Draft): Record<string, unknown> => {
  const body: Record<string, unknown> = {}
  for (const field of changed) {
    const [member = '', ...rest] = field.path.split('.')
    const value = sent(draft[field.path], 'empty' in field ? field.empty : rest.length > 0 ? undefined : null)
    body[member] = rest.length === 0 ? value : withValue(body[member] ?? Object(record)[member], rest, value)
  }
  return body
}

/** The body of something new: what was left empty is left out. */
export const newOf = (fields: readonly Field[], draft: Draft): Record<string, unknown> => {
  const body: Record<string, unknown> = {}
  for (const { path } of fields) {
    const [member = '', ...rest] = path.split('.')
    const value = sent(draft[path], undefined)
    if (value === undefined) continue
    body[member] = rest.length === 0 ? value : withValue(body[member], rest, value)
  }
  return body
}

const sent = (value: unknown, empty: unknown): unknown => {
  if (Array.isArray(value)) return value.map((text) => String(text).trim()).filter((text) => text !== '')
  return value === '' || value == null ? empty : value
}

const withValue = (record: unknown, [name = '', ...rest]: readonly string[], value: unknown): object => {
  const { [name]: before, ...others } = Object(record) as Record<string, unknown>
  const next = rest.length === 0 ? value : withValue(before, rest, value)
  return next === undefined ? others : { ...others, [name]: next }
}

/** As the save bar shows it. */
export const shown = (value: unknown, field: Field): string => {
  const { options, kind } = field
  // Their names are none.
  if (kind === 'pairs') return Object.keys(Object(value)).join(', ') || 'nothing'
  if (isSecret(field)) return value ? 'a new one' : 'as it was'
  if (kind === 'flag') return value ? 'on' : 'off'
  if (Array.isArray(value)) return value.length === 0 ? 'nothing' : value.map((one) => options?.[one] ?? one).join(', ')
  if (value === '' || value == null) return 'nothing'
  return options?.[String(value)] ?? String(value)
}

/** So that the bar leaves room for the page. */
const mostLines = 8

/** What of a text differs: the lines between those that both begin and end with. */
export const changedLines = (before: string, after: string): { gone: string; come: string } => {
  const [old, now] = [before.split('\n'), after.split('\n')]
  let start = 0
  while (start < Math.min(old.length, now.length) && old[start] === now[start]) start++
  let end = 0
  while (end < Math.min(old.length, now.length) - start && old.at(-1 - end) === now.at(-1 - end)) end++
  const between = (lines: string[]) => {
    const all = lines.slice(start, lines.length - end)
    const more = all.length - mostLines
    return more > 1 ? [...all.slice(0, mostLines), `… and ${more} lines more`].join('\n') : all.join('\n')
  }
  return { gone: between(old), come: between(now) }
}
