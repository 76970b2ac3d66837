import { RE2JS } from 're2js'
import type { Meter } from '../base/meter.ts'
import { globsIntersect } from '../go/glob-intersection.ts'
import { compileRegex, findAll, isMatch, replaceAll, split } from '../go/regexp.ts'
import { asCount, asString, refuse } from '../values/operands.ts'
import type { Value } from '../values/value.ts'
import { type BuiltinTable, builtin } from './builtin.ts'

/** `urn:foo:{.*}` → a pattern for whole texts, with regular expressions only between the delimiters. */
const templatePattern = (template: string, open: string, close: string, meter: Meter): string => {
  let pattern = '^'
  let depth = 0
  let from = 0
  for (let at = 0; at < template.length; at++) {
    if (template[at] === open) {
      if (depth++ === 0) {
        pattern += RE2JS.quote(template.slice(from, at))
        from = at + 1
      }
    } else if (template[at] === close) {
      if (--depth === 0) {
        const inner = template.slice(from, at)
        compileRegex(`^${inner}$`, meter)
        pattern += `(${inner})`
        from = at + 1
      } else if (depth < 0) refuse('unbalanced braces')
    }
  }
  if (depth !== 0) refuse('unbalanced braces')
  return `${pattern}${RE2JS.quote(template.slice(from))}$`
}

const asDelimiter = (value: Value | undefined): string => {
  const text = asString(value)
  return text.length === 1 ? text : refuse('a delimiter has to be exactly one character long')
}

export const regexBuiltins: BuiltinTable = {
  'regex.find_n': builtin([asString, asString, asCount], (pattern, text, count, meter) =>
    findAll(compileRegex(pattern, meter), text, count, meter).map(({ start, end }) => text.slice(start, end)),
  ),
  'regex.globs_match': builtin([asString, asString], globsIntersect),
  'regex.replace': builtin([asString, asString, asString], (text, pattern, replacement, meter) =>
    replaceAll(compileRegex(pattern, meter), text, replacement, meter),
  ),
  'regex.split': builtin([asString, asString], (pattern, text, meter) =>
    split(compileRegex(pattern, meter), text, meter),
  ),
  'regex.template_match': builtin(
    [asString, asString, asDelimiter, asDelimiter],
    (template, text, open, close, meter) =>
      isMatch(compileRegex(templatePattern(template, open, close, meter), meter), text, meter),
  ),
}
