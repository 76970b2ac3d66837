import type { Meter } from '../base/meter.ts'
import { refuse } from '../values/operands.ts'
import { runeOf } from './rune.ts'

/** One place of a pattern: which characters fit, and how often. */
interface Place {
  /** Ranges of code points, both ends included. */
  ranges: readonly (readonly [number, number])[]
  mark: '' | '*' | '+'
}

/**
 * Whether a text exists that fits both patterns. Patterns are characters, `.`, `[a-z]`, each with `*` or `+` behind it,
 * and `\` before a character that is meant literally.
 *
 * OPA's procedure, not the exact answer: a repeated place takes what it can of the other pattern, place by place, so
 * that `a+b*` and `a+` have nothing in common for it. Rules are tested with OPA, and must then not decide otherwise
 * here.
 */
export const globsIntersect = (left: string, right: string, { spend }: Meter): boolean => {
  const [a, b] = [placesOf(left), placesOf(right)]
  spend(unitsForPlace * (left.length + right.length))
  const overlap: Overlap = (one, other) => {
    spend(unitsForPlace + one.ranges.length * other.ranges.length)
    return one.ranges.some(([low, high]) => other.ranges.some(([from, to]) => low <= to && from <= high))
  }
  const trimmed = trim(a, b, overlap)
  return trimmed !== undefined && createComparison(...trimmed, overlap)(0, 0)
}

const unitsForPlace = 20

type Overlap = (a: Place, b: Place) => boolean

type Places = readonly Place[]

/** Without what is the same at both ends, but for one place each; nothing when plain places there differ. */
const trim = (a: Places, b: Places, overlap: Overlap): [Places, Places] | undefined => {
  let start = 0
  for (; ; start++) {
    const [one, other] = [a[start], b[start]]
    if (!one || !other || one.mark !== '' || other.mark !== '') break
    if (!overlap(one, other)) return undefined
  }
  const from = Math.max(start - 1, 0)
  let end = 0
  for (; a.length - end > from && b.length - end > from; end++) {
    const [one, other] = [a.at(-1 - end), b.at(-1 - end)]
    if (!one || !other || one.mark !== '' || other.mark !== '') break
    if (!overlap(one, other)) return undefined
  }
  const cut = Math.max(end - 1, 0)
  return [a.slice(from, a.length - cut), b.slice(from, b.length - cut)]
}

/** Each pair of places is looked at once: the time is that of the product of both lengths, squared at worst. */
const createComparison = (a: Places, b: Places, overlap: Overlap): ((i: number, j: number) => boolean) => {
  const known = new Map<number, boolean>()
  const remember = (kind: number, i: number, j: number, find: () => boolean): boolean => {
    const key = (i * (b.length + 1) + j) * 3 + kind
    const before = known.get(key)
    if (before !== undefined) return before
    const found = find()
    known.set(key, found)
    return found
  }

  const compare = (i: number, j: number): boolean =>
    remember(0, i, j, () => {
      const [one, other] = [a[i], b[j]]
      if (!one || !other) return !one && !other
      if (one.mark !== '') return repeated('a', one, other, i, j)
      if (other.mark !== '') return repeated('b', one, other, i, j)
      return overlap(one, other) && compare(i + 1, j + 1)
    })

  /** `side` has the repeated place. */
  const repeated = (side: 'a' | 'b', one: Place, other: Place, i: number, j: number): boolean => {
    const star = side === 'a' ? one : other
    if (star.mark === '*') return starred(side, star, i, j)
    return overlap(one, other) && starred(side, star, side === 'a' ? i : i + 1, side === 'a' ? j + 1 : j)
  }

  const starred = (side: 'a' | 'b', star: Place, i: number, j: number): boolean =>
    remember(side === 'a' ? 1 : 2, i, j, () => {
      const isA = side === 'a'
      const next = isA ? a[i + 1] : b[j + 1]
      const from = isA ? j : i
      const others = isA ? b : a
      for (let at = from; at < others.length; at++) {
        const other = others[at] as Place
        if (next && overlap(other, next) && (isA ? compare(i + 1, at) : compare(at, j + 1))) return true
        if (!overlap(other, star)) return false
      }
      return next === undefined
    })

  return compare
}

const anything: Place['ranges'] = [[0, 0x10ffff]]

const placesOf = (pattern: string): Place[] => {
  const characters = Array.from(pattern)
  const places: Place[] = []
  let at = 0
  const literal = (): number => {
    if (characters[at] === '\\') at++
    return runeOf(characters[at++] ?? refuse('the pattern ends with a backslash'))
  }
  const setRanges = (): (readonly [number, number])[] => {
    const ranges: (readonly [number, number])[] = []
    while (characters[at] !== ']') {
      if (at >= characters.length) refuse('[ without matching ]')
      const low = literal()
      if (characters[at] === '-' && characters[at + 1] !== ']') {
        at++
        const high = literal()
        if (high < low) refuse('a range of characters is the wrong way round')
        ranges.push([low, high])
      } else ranges.push([low, low])
    }
    at++
    return ranges.length > 0 ? ranges : refuse('[] is empty')
  }
  for (let character = characters[at]; character !== undefined; character = characters[at]) {
    if ('*+]'.includes(character)) refuse(`${character} has no place here`)
    let ranges = anything
    if (character === '.') at++
    else if (character === '[') {
      at++
      ranges = setRanges()
    } else {
      const code = literal()
      ranges = [[code, code]]
    }
    const mark = characters[at]
    if (mark === '*' || mark === '+') at++
    places.push({ ranges, mark: mark === '*' || mark === '+' ? mark : '' })
  }
  return places
}
