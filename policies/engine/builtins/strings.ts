import { asCount, asString, asStrings, charactersOf, refuse } from '../values/operands.ts'
import type { Value } from '../values/values.ts'
import type { HostBuiltin } from './index.ts'

const oneOrMore = (value: Value | undefined): string[] => (typeof value === 'string' ? [value] : asStrings(value))

const anyPair =
  (matches: (text: string, part: string) => boolean): HostBuiltin =>
  ([search, base]) => {
    const texts = oneOrMore(search)
    const parts = oneOrMore(base)
    return texts.some((text) => parts.some((part) => matches(text, part)))
  }

/** Positions count characters, not UTF-16 units. */
const indexesOf = (text: string, part: string): number[] => {
  if (part === '') refuse('empty search character')
  const found: number[] = []
  let characters = 0
  let counted = 0
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + 1)) {
    characters += charactersOf(text.slice(counted, at)).length
    counted = at
    found.push(characters)
  }
  return found
}

const count = (text: string, part: string): number =>
  part === '' ? charactersOf(text).length + 1 : text.split(part).length - 1

/** The first `most` parts, or the last ones when it is negative. */
const splitParts = (text: string, separator: string, most: number): string[] => {
  const parts = separator === '' ? charactersOf(text) : text.split(separator)
  return most >= 0 ? parts.slice(0, most) : parts.slice(most)
}

export const stringBuiltins: Record<string, HostBuiltin> = {
  'glob.quote_meta': ([pattern]) => asString(pattern).replace(/[*?\\[\]{}]/g, '\\$&'),
  indexof_n: ([text, part]) => indexesOf(asString(text), asString(part)),
  'strings.any_prefix_match': anyPair((text, part) => text.startsWith(part)),
  'strings.any_suffix_match': anyPair((text, part) => text.endsWith(part)),
  'strings.count': ([text, part]) => count(asString(text), asString(part)),
  'strings.split_n': ([text, separator, most]) => splitParts(asString(text), asString(separator), asCount(most)),
}
