import { asCount, asString, asStrings, refuse } from '../values/operands.ts'
import type { Value } from '../values/value.ts'
import { type Builtin, type BuiltinTable, builtin } from './builtin.ts'

const asOneOrMore = (value: Value | undefined): string[] => (typeof value === 'string' ? [value] : asStrings(value))

const anyPair = (matches: (text: string, part: string) => boolean): Builtin =>
  builtin([asOneOrMore, asOneOrMore], (texts, parts) => texts.some((text) => parts.some((part) => matches(text, part))))

/** Positions count characters, not UTF-16 units. */
const indexesOf = (text: string, part: string): number[] => {
  if (part === '') refuse('empty search character')
  const found: number[] = []
  let characters = 0
  let counted = 0
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + 1)) {
    characters += [...text.slice(counted, at)].length
    counted = at
    found.push(characters)
  }
  return found
}

const count = (text: string, part: string): number => (part === '' ? [...text].length + 1 : text.split(part).length - 1)

/** The first `most` parts, or the last ones when it is negative. */
const splitParts = (text: string, separator: string, most: number): string[] => {
  const parts = separator === '' ? [...text] : text.split(separator)
  return most >= 0 ? parts.slice(0, most) : parts.slice(most)
}

export const stringBuiltins: BuiltinTable = {
  'glob.quote_meta': builtin([asString], (pattern) => pattern.replace(/[*?\\[\]{}]/g, '\\$&')),
  indexof_n: builtin([asString, asString], indexesOf),
  'strings.any_prefix_match': anyPair((text, part) => text.startsWith(part)),
  'strings.any_suffix_match': anyPair((text, part) => text.endsWith(part)),
  'strings.count': builtin([asString, asString], count),
  'strings.split_n': builtin([asString, asString, asCount], splitParts),
}
