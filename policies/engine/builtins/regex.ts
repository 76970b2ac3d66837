import { RE2JS } from 're2js'
import { globsIntersect } from '../go/glob-intersection.ts'
import { asCount, asString, refuse } from '../values/operands.ts'
import type { HostBuiltin } from './index.ts'

/** Compiled patterns that were used lately. Go's syntax; time is linear in the text, whatever the pattern. */
const compiled = new Map<string, RE2JS>()
const mostCompiled = 500

export const compileRegex = (pattern: string): RE2JS => {
  const known = compiled.get(pattern)
  if (known) return known
  const regex = tryCompile(pattern)
  if (compiled.size >= mostCompiled) compiled.delete(compiled.keys().next().value!)
  compiled.set(pattern, regex)
  return regex
}

const tryCompile = (pattern: string): RE2JS => {
  try {
    return RE2JS.compile(pattern)
  } catch {
    return refuse('not a valid regular expression')
  }
}

/** Where a match and its groups lie; a group that took no part lies nowhere. */
type Spans = readonly ({ start: number; end: number } | undefined)[]

const matchesFrom = (regex: RE2JS, text: string): ((from: number) => Spans | undefined) => {
  const matcher = regex.matcher(text)
  return (from) => {
    if (!matcher.find(from)) return undefined
    return Array.from({ length: matcher.groupCount() + 1 }, (_, group) => {
      const start = matcher.start(group)
      return start < 0 ? undefined : { start, end: matcher.end(group) }
    })
  }
}

const widthAt = (text: string, at: number): number => ((text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1)

/** Go's `FindAll`: no empty match right after another one. A negative `most` means all. */
const findAll = (regex: RE2JS, text: string, most: number): Spans[] => {
  const find = matchesFrom(regex, text)
  const found: Spans[] = []
  let at = 0
  let previousEnd = -1
  while (at <= text.length && (most < 0 || found.length < most)) {
    const spans = find(at)
    if (!spans) break
    const { start, end } = spans[0]!
    if (end === at) {
      if (start !== previousEnd) found.push(spans)
      at += widthAt(text, at)
    } else {
      found.push(spans)
      at = end
    }
    previousEnd = end
  }
  return found
}

const split = (regex: RE2JS, pattern: string, text: string): string[] => {
  if (pattern !== '' && text === '') return ['']
  const parts: string[] = []
  let begin = 0
  let end = 0
  for (const [whole] of findAll(regex, text, -1)) {
    end = whole!.start
    if (whole!.end !== 0) parts.push(text.slice(begin, end))
    begin = whole!.end
  }
  if (end !== text.length) parts.push(text.slice(begin))
  return parts
}

const replaceAll = (regex: RE2JS, text: string, template: string): string => {
  const find = matchesFrom(regex, text)
  const groupNames = regex.namedGroups()
  let result = ''
  let lastEnd = 0
  let at = 0
  while (at <= text.length) {
    const spans = find(at)
    if (!spans) break
    const { start, end } = spans[0]!
    result += text.slice(lastEnd, start)
    if (end > lastEnd || start === 0) result += expand(template, text, spans, groupNames)
    lastEnd = end
    at = Math.max(end, at + widthAt(text, at))
  }
  return result + text.slice(lastEnd)
}

const reference = /\$(?:\$|\{([A-Za-z0-9_]+)\}|([A-Za-z0-9_]+))/g

/** `$1`, `$name`, `${name}`; `$$` is a dollar sign, unknown names are empty. */
const expand = (template: string, text: string, spans: Spans, names: Record<string, number>): string =>
  template.replace(reference, (all, braced?: string, bare?: string) => {
    const name = braced ?? bare
    if (name === undefined) return all === '$$' ? '$' : all
    const index = /^\d{1,8}$/.test(name) ? Number(name) : names[name]
    const span = index === undefined ? undefined : spans[index]
    return span ? text.slice(span.start, span.end) : ''
  })

/** `urn:foo:{.*}` → a pattern for whole texts, with regular expressions only between the delimiters. */
const templatePattern = (template: string, open: string, close: string): string => {
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
        compileRegex(`^${inner}$`)
        pattern += `(${inner})`
        from = at + 1
      } else if (depth < 0) refuse('unbalanced braces')
    }
  }
  if (depth !== 0) refuse('unbalanced braces')
  return `${pattern}${RE2JS.quote(template.slice(from))}$`
}

const asDelimiter = (text: string): string =>
  text.length === 1 ? text : refuse('a delimiter has to be exactly one character long')

export const regexBuiltins: Record<string, HostBuiltin> = {
  'regex.find_n': ([pattern, text, count]) => {
    const value = asString(text)
    return findAll(compileRegex(asString(pattern)), value, asCount(count)).map(([whole]) =>
      value.slice(whole!.start, whole!.end),
    )
  },
  'regex.globs_match': ([left, right]) => globsIntersect(asString(left), asString(right)),
  'regex.replace': ([text, pattern, replacement]) =>
    replaceAll(compileRegex(asString(pattern)), asString(text), asString(replacement)),
  'regex.split': ([pattern, text]) => split(compileRegex(asString(pattern)), asString(pattern), asString(text)),
  'regex.template_match': ([template, text, open, close]) => {
    const pattern = templatePattern(asString(template), asDelimiter(asString(open)), asDelimiter(asString(close)))
    return compileRegex(pattern).matcher(asString(text)).find()
  },
}
