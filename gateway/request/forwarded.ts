/** One element of a `Forwarded` field (RFC 7239 §4): what a proxy says about the request that it received. */
export interface ForwardedElement {
  /** As written, without quotes: an address, perhaps with a port, or a name that hides it. */
  for: string | undefined
  proto: string | undefined
  host: string | undefined
}

// Each blank has one place in it: a long run of them must not be tried in many ways.
const pair =
  /(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)=([!#$%&'*+.^_`|~0-9A-Za-z-]+|"(?:[^"\\]|\\.)*"))?[ \t]*(?:([;,])[ \t]*|$)/y

/**
 * Leftmost first: the order in which the request passed them. Undefined: not as RFC 7239 has it, so that nobody can say
 * whose words are whose.
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
