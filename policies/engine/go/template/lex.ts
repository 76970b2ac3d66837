import type { Meter } from '../../base/meter.ts'
import { refuse, type TemplateNumber } from './values.ts'

/** Go's text/template, first step: the text and its actions, cut into tokens. */

export type Token = { kind: 'space' | 'mark' | 'word' | 'field' | 'variable' | 'string' | 'number'; text: string }
/** Text, or an action: what stands between `{{` and `}}`. */
export type Piece = { text: string } | { tokens: Token[] }

const patterns: readonly [Token['kind'] | 'comment', RegExp][] = [
  ['space', /[ \t\r\n]+/y],
  ['comment', /\/\*[\s\S]*?\*\//y],
  ['string', /"(?:[^"\\\n]|\\.)*"|`[^`]*`|'(?:[^'\\\n]|\\(?:[^xuU]|x..|u....|U........))'/y],
  ['variable', /\$[\p{L}\p{Nd}_]*/uy],
  [
    'number',
    /[+-]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9]+)(?:[eE][+-]?[0-9_]+)?)/y,
  ],
  ['field', /\.[\p{L}_][\p{L}\p{Nd}_]*/uy],
  ['word', /[\p{L}_][\p{L}\p{Nd}_]*/uy],
  ['mark', /:=|[=|(),.]/y],
]

const unitsForToken = 200
const unitsForCharacter = 3

export const lex = (source: string, { spend }: Meter): Piece[] => {
  const found: Piece[] = []
  let at = 0
  let trimNext = false
  while (at < source.length) {
    const open = source.indexOf('{{', at)
    let text = source.slice(at, open < 0 ? undefined : open)
    spend(unitsForToken)
    if (trimNext) text = text.replace(/^[ \t\r\n]+/, '')
    const trimsBefore = open >= 0 && /^-[ \t\r\n]/.test(source.slice(open + 2, open + 4))
    if (trimsBefore) text = withoutEndingSpace(text)
    if (text !== '') found.push({ text })
    if (open < 0) break
    const action = readTokens(source, open + (trimsBefore ? 3 : 2))
    spend(unitsForToken * action.tokens.length + unitsForCharacter * (action.end - open))
    if (action.tokens.length > 0) found.push({ tokens: action.tokens })
    at = action.end
    trimNext = action.trims
  }
  return found
}

/** No pattern: one that is anchored at the end takes the square of the time on a long run of spaces. */
const withoutEndingSpace = (text: string): string => {
  let length = text.length
  while (' \t\r\n'.includes(text[length - 1] ?? '-')) length--
  return text.slice(0, length)
}

const readTokens = (source: string, from: number): { tokens: Token[]; end: number; trims: boolean } => {
  const tokens: Token[] = []
  let isComment = false
  for (let at = from; ; ) {
    if (source.startsWith('}}', at)) return finish(tokens, isComment, at + 2, false)
    if (source.startsWith('-}}', at) && tokens.at(-1)?.kind === 'space') return finish(tokens, isComment, at + 3, true)
    const next = tokenAt(source, at)
    if (next.kind === 'comment') isComment = true
    else tokens.push({ kind: next.kind, text: next.text })
    at += next.text.length
  }
}

const finish = (tokens: Token[], isComment: boolean, end: number, trims: boolean) => {
  const trimmed = tokens.slice(
    tokens[0]?.kind === 'space' ? 1 : 0,
    tokens.length > 1 && tokens.at(-1)?.kind === 'space' ? -1 : undefined,
  )
  if (trimmed.length === 0 && !isComment) refuse('missing value for command')
  return { tokens: isComment ? [] : trimmed, end, trims }
}

const tokenAt = (source: string, at: number): { kind: Token['kind'] | 'comment'; text: string } => {
  for (const [kind, pattern] of patterns) {
    pattern.lastIndex = at
    const [text] = pattern.exec(source) ?? []
    if (text !== undefined) return { kind, text }
  }
  return refuse(at >= source.length ? 'unclosed action' : 'unexpected character')
}

const escapes: Record<string, string> = { a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }

/** The text of a token of kind `string`; of a character constant too. */
export const unquote = (text: string): string => {
  const inside = text.slice(1, -1)
  if (text[0] === '`') return inside.replaceAll('\r', '')
  return inside.replace(
    /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))/g,
    (_all, x?: string, u?: string, long?: string, octal = '', other?: string) => {
      if (other !== undefined) return escapes[other] ?? ('\\\'"'.includes(other) ? other : refuse('bad escape'))
      const hex = x ?? u ?? long
      const code = hex === undefined ? Number.parseInt(octal, 8) : Number.parseInt(hex, 16)
      return code > 0x10ffff ? refuse('bad escape') : String.fromCodePoint(code)
    },
  )
}

export const numberOf = (text: string): TemplateNumber => {
  const bare = text.replaceAll('_', '').replace(/^\+/, '')
  const isNegative = bare.startsWith('-')
  const digits = isNegative ? bare.slice(1) : bare
  const signed = (value: bigint) => ({ int: isNegative ? -value : value })
  if (/^0[xXbBoO]/.test(digits)) return signed(BigInt(digits))
  if (/^0[0-7]+$/.test(digits)) return signed(BigInt(`0o${digits.slice(1)}`))
  if (/^\d+$/.test(digits)) return signed(BigInt(digits))
  const value = Number(bare)
  // 1e3 is an integer too, but one of 64 bits.
  return Number.isInteger(value) && Math.abs(value) < 2 ** 63 && !digits.includes('.')
    ? { int: BigInt(value) }
    : { float: value }
}
