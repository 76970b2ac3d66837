import { catalogue, eventTypes } from './catalogue.ts'

/** Other spellings under which a hook may be registered. */
const aliases: Record<string, string> = { 'Role.Scopes.Update': 'Role.Scopes.Updated' }

/** The type that a name stands for; undefined when there is none. */
export const eventTypeOf = (name: string): string | undefined => {
  const type = aliases[name] ?? name
  return eventTypes.has(type) ? type : undefined
}

/**
 * The wildcards that cover a type, whether or not the type allows it: `User.Data.*`, `User.*` and `*` for
 * `User.Data.Updated`.
 */
const wildcardsOf = (type: string): string[] => {
  const words = type.split('.')
  return ['*', ...words.slice(1).map((_, index) => `${words.slice(0, index + 1).join('.')}.*`)]
}

/**
 * What a hook may be registered for: a type, or a wildcard (`*`, `User.*`) that covers at least one type that does not
 * have to be named. Undefined for anything else.
 */
export const eventPatternOf = (name: string): string | undefined =>
  eventTypeOf(name) ?? (typesMatching([name]).length > 0 ? name : undefined)

/** The patterns under which a hook gets events of this type, also of one that a newer version has recorded. */
export const patternsOf = (type: string): string[] => [type, ...(eventTypes.get(type)?.named ? [] : wildcardsOf(type))]

/** The types that these patterns cover, in the order of the catalogue. */
export const typesMatching = (patterns: readonly string[]): string[] =>
  catalogue.map(({ type }) => type).filter((type) => patternsOf(type).some((pattern) => patterns.includes(pattern)))
