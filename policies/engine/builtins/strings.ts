import { asCount, asString, asStrings, refuse } from '../values/operands.ts'
import { indexesOf, splitText } from '../values/search.ts'
import type { Value } from '../values/value.ts'
import { type Builtin, type BuiltinTable, builtin, type EvaluationContext } from './builtin.ts'

const asOneOrMore = (value: Value | undefined): string[] => (typeof value === 'string' ? [value] : asStrings(value))

const anyPair = (matches: (text: string, part: string) => boolean): Builtin =>
  builtin([asOneOrMore, asOneOrMore], (texts, parts, { spend }) => {
    const cost = parts.reduce((sum, part) => sum + unitsForPart + part.length, 0)
    return texts.some((text) => {
      spend(cost)
      return parts.some((part) => matches(text, part))
    })
  })

const unitsForPart = 5

/** Positions count characters, not UTF-16 units. */
const positionsOf = (text: string, part: string, { spend }: EvaluationContext): number[] => {
  if (part === '') refuse('empty search character')
  spend(unitsForCharacter * (text.length + part.length))
  let characters = 0
  let counted = 0
  return indexesOf(text, part).map((at) => {
    for (; counted < at; counted++) if (!isSecondHalf(text, counted)) characters++
    return characters
  })
}

/** Of a character that takes two UTF-16 units. */
const isSecondHalf = (text: string, at: number): boolean => {
  const [before, code] = [text.charCodeAt(at - 1), text.charCodeAt(at)]
  return code >= 0xdc00 && code < 0xe000 && before >= 0xd800 && before < 0xdc00
}

const unitsForCharacter = 4

const count = (text: string, part: string, { spend }: EvaluationContext): number => {
  spend(unitsForCharacter * (text.length + part.length))
  return part === '' ? [...text].length + 1 : splitText(text, part).length - 1
}

/** The first `most` parts, or the last ones when it is negative. */
const splitParts = (text: string, separator: string, most: number, { spend }: EvaluationContext): string[] => {
  spend(unitsForCharacter * (text.length + separator.length))
  const parts = separator === '' ? [...text] : splitText(text, separator)
  return most >= 0 ? parts.slice(0, most) : parts.slice(most)
}

export const stringBuiltins: BuiltinTable = {
  'glob.quote_meta': builtin([asString], (pattern, { spend }) => {
    spend(unitsForCharacter * pattern.length)
    return pattern.replace(/[*?\\[\]{}]/g, '\\$&')
  }),
  indexof_n: builtin([asString, asString], positionsOf),
  'strings.any_prefix_match': anyPair((text, part) => text.startsWith(part)),
  'strings.any_suffix_match': anyPair((text, part) => text.endsWith(part)),
  'strings.count': builtin([asString, asString], count),
  'strings.split_n': builtin([asString, asString, asCount], splitParts),
}
