/** One element of a `Forwarded` field (RFC 7239 §4): what a proxy says about the request that it received. */
export interface ForwardedElement {
  /** As written, without quotes: an address, perhaps with a port, or a name that hides it. */
  for: string | undefined
  proto: string | undefined
  host: string | undefined
}

// Each blank can match in one place only, so that a long run of blanks costs no backtracking.
const pair =
  /(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)=([!#$%&'*+.^_`|~0-9A-Za-z-]+|"(?:[^"\\]|\\.)*"))?[ \t]*(?:([;,])[ \t]*|$)/y

/**
 * Leftmost first: the order in which the request passed them. Undefined: not as RFC 7239 has it, so no element can be
 * believed.
 */
export const parseForwarded = (field: string): ForwardedElement[] | undefined => {
  const text = field.trim()
  const elements: ForwardedElement[] = []
  let current: Record<string, string> = Object.create(null)
  pair.lastIndex = 0
  for (;;) {
    const match = pair.exec(text)
    if (!match) return undefined
    const [, name, value, separator] = match
    if (name !== undefined && value !== undefined) {
      const lower = name.toLowerCase()
      if (lower in current) return undefined
      current[lower] = value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value
    }
    if (separator === ';') continue
    if (Object.keys(current).length > 0) {
      elements.push({ for: current['for'], proto: current['proto'], host: current['host'] })
    }
    if (separator === undefined) return elements
    current = Object.create(null)
  }
}
