import { z } from 'zod'

/**
 * The search parameters that existing clients send: `search=%text%` over all fields of the record, `search.<field>=…`
 * over one; `mode` and `mode.<field>` = like (default; SQL's `%` and `_`) or exact; `joint` = or (default) or and;
 * `isCaseSensitive` = false by default. A repeated parameter means any of its values.
 */
export interface Search {
  joint: 'and' | 'or'
  isCaseSensitive: boolean
  /** One of `fields` matches one of `values`. */
  conditions: SearchCondition[]
}

export interface SearchCondition {
  fields: string[]
  mode: SearchMode
  values: string[]
}

export type SearchMode = 'like' | 'exact'

const text = z.string().min(1, 'cannot be empty')
const values = z.union([text, z.array(text).max(100)]).optional()
const mode = z
  .enum(['like', 'exact'], { error: 'is not valid, expected like or exact: posix and similar_to are not supported' })
  .optional()
const joint = z.enum(['and', 'or'], { error: 'is not valid, expected and or or' })
/** A boolean in a query string, as existing clients spell it. */
export const booleanText = z
  .stringbool({ error: 'must be true or false' })
  .meta({ description: '`true` or `1`, `false` or `0`.' })

const searchShape = (fields: readonly string[]) => ({
  search: values,
  mode,
  joint: joint.default('or'),
  isCaseSensitive: booleanText.default(false),
  ...Object.fromEntries(
    fields.flatMap((field) => [[`search.${field}`, values] as const, [`mode.${field}`, mode] as const]),
  ),
})

const searchOf = (fields: readonly string[], query: Record<string, unknown>): Search | undefined => {
  const defaultMode = (query['mode'] as SearchMode | undefined) ?? 'like'
  const everywhere = list(query['search'])
  const conditions: SearchCondition[] = fields
    .map((field) => ({
      fields: [field],
      mode: (query[`mode.${field}`] as SearchMode | undefined) ?? defaultMode,
      values: list(query[`search.${field}`]),
    }))
    .filter((condition) => condition.values.length > 0)
  if (everywhere.length > 0) conditions.unshift({ fields: [...fields], mode: defaultMode, values: everywhere })
  if (conditions.length === 0) return undefined
  return {
    joint: query['joint'] as Search['joint'],
    isCaseSensitive: query['isCaseSensitive'] as boolean,
    conditions,
  }
}

/** Whether a query parameter is one of the above. */
export const isSearchParameter = (name: string): boolean => /^(?:search|mode|joint|isCaseSensitive)(?:\.|$)/.test(name)

/** An odd number of backslashes: the last one escapes nothing. */
const endsWithEscape = (pattern: string) => /(?<!\\)(?:\\\\)*\\$/.test(pattern)

const list = (value: unknown) => (value === undefined ? [] : [value].flat()).filter((item) => typeof item === 'string')

/**
 * The query of a list: the parameters in `shape`, and `search` made of those above. An unknown search field is refused:
 * ignoring it would answer with everything.
 */
export const listQuery = <Shape extends z.ZodRawShape>(fields: readonly string[], shape: Shape) =>
  z
    .looseObject({ ...searchShape(fields), ...shape })
    .superRefine((query, context) => {
      for (const name of Object.keys(query)) {
        const field = /^(?:search|mode)\.(.*)$/s.exec(name)?.[1]
        if (field === undefined || fields.includes(field)) continue
        context.addIssue({
          code: 'custom',
          path: [name],
          message: `is not valid, the fields to search are ${fields.join(', ')}`,
        })
      }
      for (const name of ['search', ...fields.map((field) => `search.${field}`)]) {
        const mode = query[name.replace('search', 'mode')] ?? query['mode'] ?? 'like'
        if (mode !== 'like' || !list(query[name]).some(endsWithEscape)) continue
        context.addIssue({
          code: 'custom',
          path: [name],
          message: 'ends with \\, which must have a character behind it',
        })
      }
    })
    .transform((query) => ({
      ...(query as unknown as z.output<z.ZodObject<Shape>>),
      search: searchOf(fields, query as Record<string, unknown>),
    }))
