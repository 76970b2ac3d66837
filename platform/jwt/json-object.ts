/** Objects nested deeper than this are refused, so that whatever walks a token later needs no limit of its own. */
const maxDepth = 16

const endOfString = (text: string, start: number): number => {
  let index = start + 1
  while (text.charCodeAt(index) !== 0x22) index += text.charCodeAt(index) === 0x5c ? 2 : 1
  return index
}

/**
 * Parses a JSON object strictly, as tokens need it (RFC 7515 §4, RFC 7519 §4 allow to reject repeated member names;
 * parsers that differ on which one wins are a known way around checks). Returns undefined for: anything but an object,
 * a repeated member name at any depth (compared after unescaping), an unpaired surrogate, nesting deeper than 16.
 */
export const parseJsonObject = (text: string): Record<string, unknown> | undefined => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  return hasOneMeaning(text) ? (value as Record<string, unknown>) : undefined
}

/**
 * `text` is valid JSON. One entry of `names` per open container: the member names so far, or undefined for an array.
 */
const hasOneMeaning = (text: string): boolean => {
  const names: (Set<string> | undefined)[] = []
  let expectName = false
  for (let index = 0; index < text.length; index++) {
    switch (text.charCodeAt(index)) {
      case 0x7b: // {
      case 0x5b: // [
        expectName = text.charCodeAt(index) === 0x7b
        names.push(expectName ? new Set() : undefined)
        if (names.length > maxDepth) return false
        break
      case 0x7d: // }
      case 0x5d: // ]
        names.pop()
        expectName = false
        break
      case 0x2c: // ,
        expectName = names.at(-1) !== undefined
        break
      case 0x22: {
        const end = endOfString(text, index)
        const literal = text.slice(index, end + 1)
        const content: string = literal.includes('\\') ? JSON.parse(literal) : literal.slice(1, -1)
        if (!content.isWellFormed()) return false
        if (expectName) {
          const seen = names.at(-1)!
          if (seen.has(content)) return false
          seen.add(content)
          expectName = false
        }
        index = end
      }
    }
  }
  return true
}
