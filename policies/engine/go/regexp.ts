import { RE2JS } from 're2js'
import { memoized } from '../base/memoized.ts'
import { orRefuse } from '../values/operands.ts'

/** Go's `regexp`: RE2 syntax, in a time that is linear in the text, whatever the pattern. */

/** Refuses what is no pattern. */
export const compileRegex = memoized(500, (pattern: string) =>
  orRefuse(() => RE2JS.compile(pattern), 'not a valid regular expression'),
)

/** Where a match lies in a text, in UTF-16 units. */
interface Span {
  start: number
  end: number
}

/** `FindAll`: no empty match right after another one. A negative `most` means all. */
export const findAll = (regex: RE2JS, text: string, most = -1): Span[] => {
  const matcher = regex.matcher(text)
  const found: Span[] = []
  let at = 0
  let previousEnd = -1
  while (at <= text.length && (most < 0 || found.length < most) && matcher.find(at)) {
    const [start, end] = [matcher.start(), matcher.end()]
    if (end !== at || start !== previousEnd) found.push({ start, end })
    at = end === at ? at + widthAt(text, at) : end
    previousEnd = end
  }
  return found
}

const widthAt = (text: string, at: number): number => ((text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1)

/** `Split`, into all parts. */
export const split = (regex: RE2JS, text: string): string[] => {
  if (regex.pattern() !== '' && text === '') return ['']
  const parts: string[] = []
  let begin = 0
  let end = 0
  for (const match of findAll(regex, text)) {
    end = match.start
    if (match.end !== 0) parts.push(text.slice(begin, end))
    begin = match.end
  }
  if (end !== text.length) parts.push(text.slice(begin))
  return parts
}

/** `ReplaceAllString`. */
export const replaceAll = (regex: RE2JS, text: string, template: string): string => {
  const matcher = regex.matcher(text)
  const groupNames = regex.namedGroups()
  const group = (name: string): string => {
    const named = Object.hasOwn(groupNames, name) ? groupNames[name] : undefined
    const index = /^\d{1,8}$/.test(name) ? Number(name) : named
    if (index === undefined || index > matcher.groupCount()) return ''
    const start = matcher.start(index)
    // A group that took no part in the match is nowhere.
    return start < 0 ? '' : text.slice(start, matcher.end(index))
  }
  let result = ''
  let lastEnd = 0
  let at = 0
  while (at <= text.length && matcher.find(at)) {
    const [start, end] = [matcher.start(), matcher.end()]
    result += text.slice(lastEnd, start)
    if (end > lastEnd || start === 0) result += expand(template, group)
    lastEnd = end
    at = Math.max(end, at + widthAt(text, at))
  }
  return result + text.slice(lastEnd)
}

/** `$1`, `$name`, `${name}`; `$$` is a dollar sign, unknown names are empty. */
const expand = (template: string, group: (name: string) => string): string =>
  template.replace(/\$(?:\$|\{([A-Za-z0-9_]+)\}|([A-Za-z0-9_]+))/g, (_all, braced?: string, bare?: string) => {
    const name = braced ?? bare
    return name === undefined ? '$' : group(name)
  })
