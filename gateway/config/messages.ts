import type { z } from 'zod'
import { didYouMean } from '../../platform/nearest.ts'
import { namesAt } from './json-schema.ts'

/** Messages about members of `gateway.yaml` whose schema has none of its own. */
export const messageOf: z.core.$ZodErrorMap = (issue) => {
  switch (issue.code) {
    case 'invalid_type':
      return wrongType(issue.expected, issue.input)
    case 'invalid_value': {
      const values = [...new Set(issue.values.map(String))]
      const allowed = values.length === 1 ? values[0] : `one of ${values.join(', ')}`
      if (issue.input === undefined) return `is needed: ${allowed}`
      return `must be ${allowed}${values.length === 1 ? '' : didYouMean(issue.input, values)}`
    }
    case 'too_small':
      return bound('at least', issue.origin, issue.minimum)
    case 'too_big':
      return bound('at most', issue.origin, issue.maximum)
    case 'invalid_union':
      return 'is none of the things that may stand here'
    default:
      return undefined
  }
}

const nouns: Record<string, string> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping of names to values',
  record: 'a mapping of names to values',
}

const wrongType = (expected: string, input: unknown): string => {
  const noun = nouns[expected] ?? expected
  if (input === undefined) return `is needed: ${noun}`
  if (input === null) return `is empty: it must be ${noun}, or be left out`
  // A fraction where a whole number must be is the only number of a wrong type.
  return `must be ${noun}, not ${expected === 'int' && typeof input === 'number' ? String(input) : nounOf(input)}`
}

const nounOf = (input: unknown): string => {
  if (typeof input === 'boolean') return String(input)
  return nouns[Array.isArray(input) ? 'array' : typeof input] ?? 'that'
}

const bound = (relation: string, origin: string, limit: number | bigint): string => {
  if (origin === 'array') return `must have ${relation} ${limit} ${limit === 1 ? 'entry' : 'entries'}`
  if (origin === 'string') return limit === 1 ? 'must not be empty' : `must have ${relation} ${limit} characters`
  return `must be ${relation} ${limit}`
}

/** A hint for the unknown member `key` at `path`: `; did you mean port?`, or nothing. */
export const keyMeant = (path: readonly PropertyKey[], key: string): string => didYouMean(key, namesAt(path))
