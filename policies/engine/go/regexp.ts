import { RE2JS } from 're2js'
import { memoized } from '../base/memoized.ts'
import type { Meter } from '../base/meter.ts'
import { orRefuse, unlessRefused } from '../values/operands.ts'
import { compileCost, MeteredText, searchCost } from './regexp-cost.ts'

/**
 * Go's `regexp`: RE2 syntax. One search takes a time that is linear in the text, whatever the pattern; all searches
 * together need not, so what they read is paid for (see `regexp-cost.ts`).
 */

const compiled = memoized(500, (pattern: string) =>
  orRefuse(() => RE2JS.compile(pattern), 'not a valid regular expression'),
)

export const payForRegex = (pattern: string, { spendOnce }: Meter): void =>
  spendOnce(`regex ${pattern}`, compileCost(pattern))

/** Refuses what is no pattern. */
export const compileRegex = (pattern: string, meter: Meter): RE2JS => {
  payForRegex(pattern, meter)
  return compiled(pattern)
}

export const isRegex = (pattern: string): boolean => unlessRefused(() => compiled(pattern)) !== undefined

/** Whether the pattern matches anywhere. */
export const isMatch = (regex: RE2JS, text: string, meter: Meter): boolean => {
  const search = searchIn(regex, text, meter)
  const found = search.find(0)
  search.settle()
  return found
}

const searchIn = (regex: RE2JS, text: string, { spend }: Meter) => {
  const size = regex.re2().numberOfInstructions()
  const metered = new MeteredText(text, size, spend)
  // The types know only plain texts.
  const matcher = regex.matcher(metered as unknown as string)
  const cost = searchCost(size, text.length)
  return {
    matcher,
    settle: () => metered.settle(),
    find(from: number): boolean {
      metered.add(cost)
      return matcher.find(from)
    },
  }
}

/** Where a match lies in a text, in UTF-16 units. */
interface Span {
  start: number
  end: number
}

/** `FindAll`: no empty match right after another one. A negative `most` means all. */
export const findAll = (regex: RE2JS, text: string, most: number, meter: Meter): Span[] => {
  const search = searchIn(regex, text, meter)
  const { matcher } = search
  const found: Span[] = []
  let at = 0
  let previousEnd = -1
  while (at <= text.length && (most < 0 || found.length < most) && search.find(at)) {
    const [start, end] = [matcher.start(), matcher.end()]
    if (end !== at || start !== previousEnd) found.push({ start, end })
    at = end === at ? at + widthAt(text, at) : end
    previousEnd = end
  }
  search.settle()
  return found
}

const widthAt = (text: string, at: number): number => ((text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1)

/** `Split`, into all parts. */
export const split = (regex: RE2JS, text: string, meter: Meter): string[] => {
  if (regex.pattern() !== '' && text === '') return ['']
  const parts: string[] = []
  let begin = 0
  let end = 0
  for (const match of findAll(regex, text, -1, meter)) {
    end = match.start
    if (match.end !== 0) parts.push(text.slice(begin, end))
    begin = match.end
  }
  if (end !== text.length) parts.push(text.slice(begin))
  return parts
}

/** `ReplaceAllString`. */
export const replaceAll = (regex: RE2JS, text: string, template: string, meter: Meter): string => {
  const search = searchIn(regex, text, meter)
  const { matcher } = search
  const groupNames = regex.namedGroups()
  const group = (name: string): string => {
    const named = Object.hasOwn(groupNames, name) ? groupNames[name] : undefined
    const index = /^\d{1,8}$/.test(name) ? Number(name) : named
    if (index === undefined || index > matcher.groupCount()) return ''
    const start = matcher.start(index)
    // A group that took no part in the match is nowhere.
    const taken = start < 0 ? '' : text.slice(start, matcher.end(index))
    meter.spend(unitsForGroup + taken.length)
    return taken
  }
  let result = ''
  let lastEnd = 0
  let at = 0
  while (at <= text.length && search.find(at)) {
    const [start, end] = [matcher.start(), matcher.end()]
    result += text.slice(lastEnd, start)
    if (end > lastEnd || start === 0) {
      meter.spend(template.length)
      result += expand(template, group)
    }
    lastEnd = end
    at = Math.max(end, at + widthAt(text, at))
  }
  search.settle()
  return result + text.slice(lastEnd)
}

const unitsForGroup = 20

/** `$1`, `$name`, `${name}`; `$$` is a dollar sign, unknown names are empty. */
const expand = (template: string, group: (name: string) => string): string =>
  template.replace(/\$(?:\$|\{([A-Za-z0-9_]+)\}|([A-Za-z0-9_]+))/g, (_all, braced?: string, bare?: string) => {
    const name = braced ?? bare
    return name === undefined ? '$' : group(name)
  })
