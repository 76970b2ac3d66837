import { refuse } from './arguments.ts'

/** One place of a pattern: which characters fit, and whether it may be left out or repeated. */
interface Place {
  /** Ranges of code points, both ends included. */
  ranges: readonly (readonly [number, number])[]
  optional: boolean
  repeated: boolean
}

/**
 * Whether a text exists that fits both patterns. Patterns are characters, `.`, `[a-z]`, each with `*` or `+` behind it, and `\` before
 * a character that is meant literally.
 */
export const globsIntersect = (left: string, right: string): boolean => {
  const [a, b] = [placesOf(left), placesOf(right)]
  const width = b.length + 1
  const seen = new Uint8Array((a.length + 1) * width)
  const open: number[] = []
  const visit = (i: number, j: number): void => {
    const state = i * width + j
    if (seen[state] === 1) return
    seen[state] = 1
    open.push(state)
  }
  visit(0, 0)
  for (let state = open.pop(); state !== undefined; state = open.pop()) {
    const [i, j] = [Math.floor(state / width), state % width]
    const [one, other] = [a[i], b[j]]
    if (!one && !other) return true
    if (one?.optional) visit(i + 1, j)
    if (other?.optional) visit(i, j + 1)
    if (!one || !other || !overlap(one, other)) continue
    visit(i + 1, j + 1)
    if (one.repeated) visit(i, j + 1)
    if (other.repeated) visit(i + 1, j)
  }
  return false
}

const overlap = (a: Place, b: Place): boolean =>
  a.ranges.some(([low, high]) => b.ranges.some(([from, to]) => low <= to && from <= high))

const anything: Place['ranges'] = [[0, 0x10ffff]]

const placesOf = (pattern: string): Place[] => {
  const characters = Array.from(pattern)
  const places: Place[] = []
  let at = 0
  const literal = (): number => {
    if (characters[at] === '\\') at++
    return (characters[at++] ?? refuse('the pattern ends with a backslash')).codePointAt(0)!
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
  while (at < characters.length) {
    const character = characters[at]!
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
    places.push({ ranges, optional: mark === '*', repeated: mark === '*' || mark === '+' })
  }
  return places
}
