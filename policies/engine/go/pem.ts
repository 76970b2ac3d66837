import { decodeBase64 } from './base64.ts'

/** A block of PEM (RFC 7468 §2), and the text behind it. */
export interface PemBlock {
  type: string
  bytes: Buffer
  rest: string
}

const begin = '-----BEGIN '
const end = '-----END '
const dashes = '-----'

/**
 * The first whole block, as Go's `pem.Decode` finds it: both marks begin a line and nothing else is on it, headers are
 * skipped, and a torn block is text like any other. `undefined` when there is none.
 */
export const decodePem = (text: string): PemBlock | undefined => {
  let ending = 0
  for (let at = markAt(text, begin, 0); at !== undefined; at = markAt(text, begin, at)) {
    const first = lineAt(text, at + begin.length)
    at = first.next
    if (!first.line.endsWith(dashes)) continue
    const body = behindHeaders(text, at)
    if (body === undefined) return undefined
    // Behind headers there must be a line before the end.
    const earliest = body === at ? body : body + 1
    // Looked for once, however many beginnings stand before it.
    if (ending < earliest) ending = markAt(text, end, earliest) ?? text.length
    if (ending === text.length) return undefined
    const last = lineAt(text, ending + end.length)
    if (last.line !== first.line) continue
    const content = text.slice(body, ending)
    const bytes = content.includes(dashes) ? undefined : decodeBase64(content.replace(/[ \t]/g, ''))
    if (bytes) return { type: first.line.slice(0, -dashes.length), bytes, rest: text.slice(last.next) }
  }
  return undefined
}

/** All blocks, whatever stands between them. */
export const pemBlocks = (text: string): PemBlock[] => {
  const blocks: PemBlock[] = []
  for (let next = decodePem(text); next; next = decodePem(next.rest)) blocks.push(next)
  return blocks
}

/** Where the next line that begins with the mark begins. */
const markAt = (text: string, mark: string, from: number): number | undefined => {
  const startsLine = from === 0 || text[from - 1] === '\n'
  if (startsLine && text.startsWith(mark, from)) return from
  const at = text.indexOf(`\n${mark}`, from)
  return at < 0 ? undefined : at + 1
}

/** A line without its end and the space before that; `next`: where the one behind it begins. */
const lineAt = (text: string, from: number): { line: string; next: number } => {
  const at = text.indexOf('\n', from)
  if (at < 0) return { line: withoutSpace(text.slice(from)), next: text.length }
  return { line: withoutSpace(text.slice(from, at).replace(/\r$/, '')), next: at + 1 }
}

/** No pattern: one that is anchored at the end takes the square of the time on a long run of spaces. */
const withoutSpace = (line: string): string => {
  let length = line.length
  while (line[length - 1] === ' ' || line[length - 1] === '\t') length--
  return line.slice(0, length)
}

const behindHeaders = (text: string, from: number): number | undefined => {
  let at = from
  while (at < text.length) {
    const { line, next } = lineAt(text, at)
    if (!line.includes(':')) return at
    at = next
  }
  return undefined
}
