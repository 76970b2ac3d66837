import type { Meter } from '../base/meter.ts'

/** What regular expressions cost, in units. */

/** One after the other, each found without looking far ahead. */
const token =
  /\\(?:Q.*?(?:\\E|$)|[pPx]\{[^}]{0,40}\}|.)|\[\^?\]?(?:\\.|\[:[a-z^]*:\]|[^\]\\])*\]?|\{(\d+)(?:,(\d*))?\}|./gsy

const unitsForInstruction = 150
/** The tables of `\p{L}` and the like are long. */
const unitsForTable = 2_000
/** Of a range in a class, for each character up to its end, where case does not matter. */
const unitsForFolding = 4
/** The last character that has another case. */
const lastFolded = 0x1e943

/**
 * Of making a program of a pattern. Counts (`{1000}`) multiply what they stand behind, so the length of the pattern
 * says little; what is no pattern costs something too.
 */
export const compileCost = (pattern: string): number => {
  const open: number[] = []
  let size = 0
  let last = 0
  let extra = 0
  for (const [text, least, most] of pattern.matchAll(token)) {
    if (text === '(') {
      open.push(size)
      size = 0
      last = 0
    } else if (text === ')') {
      last = size + 2
      size = last + (open.pop() ?? 0)
    } else if (least !== undefined) {
      const times = Math.min(Math.max(Number(most || least), 1), 1_000)
      size += last * (times - 1)
      last *= times
    } else {
      last = 1
      size += text.startsWith('\\Q') ? text.length : 1
      if (/^\\[pP]/.test(text)) extra += unitsForTable
    }
  }
  const whole = open.reduce((sum, one) => sum + one, size)
  return (whole + pattern.length) * unitsForInstruction + extra + foldingCost(pattern)
}

const foldingCost = (pattern: string): number => {
  if (!/\(\?[A-Za-z-]*i/.test(pattern)) return 0
  let units = 0
  for (const [, high = ''] of pattern.matchAll(/-(.)/gsu)) {
    units += unitsForFolding * (high === '\\' ? lastFolded : Math.min(high.codePointAt(0) ?? 0, lastFolded))
  }
  return units
}

/** Of beginning a search: what it has seen of a text is marked in bits, as long as there are not too many. */
export const searchCost = (size: number, length: number): number =>
  50 + Math.ceil(Math.min(size * (length + 1), 262_144) / 4_096)

/** So many are gathered before they are spent. */
const chunk = 4_096

/**
 * A text that is paid for as it is read, which is also what ends a search: for each character a step of the program,
 * which has so many instructions.
 */
export class MeteredText extends String {
  readonly #text: string
  readonly #cost: number
  readonly #spend: Meter['spend']
  #units = 0

  constructor(text: string, size: number, spend: Meter['spend']) {
    super(text)
    this.#text = text
    this.#cost = 1 + Math.ceil((size * 2) / 3)
    this.#spend = spend
  }

  override charCodeAt(index: number): number {
    this.add(this.#cost)
    return this.#text.charCodeAt(index)
  }

  override indexOf(part: string, from = 0): number {
    const found = this.#text.indexOf(part, from)
    this.add(Math.ceil(((found < 0 ? this.#text.length : found) - from) / 8) + part.length)
    return found
  }

  add(units: number): void {
    this.#units += units
    if (this.#units >= chunk) this.settle()
  }

  /** Pays for what was read since. */
  settle(): void {
    const units = this.#units
    this.#units = 0
    if (units > 0) this.#spend(units)
  }
}
