/** `/orders/{id}/**`, taken apart. */
export interface PathPattern {
  readonly text: string
  /** Decoded literals, `null` for a parameter. */
  readonly segments: readonly (string | null)[]
  readonly parameters: readonly { readonly name: string; readonly index: number }[]
  /** Ends in `**`: matches any further segments, none too. */
  readonly rest: boolean
}

/**
 * Returns what is wrong, in words, instead of throwing: the reader of a configuration file wants all problems at once.
 */
export const parsePattern = (text: string): PathPattern | string => {
  if (!text.startsWith('/')) return 'must start with a slash'
  const parts = text === '/' ? [] : text.slice(1).split('/')
  const segments: (string | null)[] = []
  const parameters: { name: string; index: number }[] = []
  const rest = parts.at(-1) === '**'
  if (rest) parts.pop()
  for (const [index, part] of parts.entries()) {
    const name = /^\{([A-Za-z][A-Za-z0-9_]{0,63})\}$/.exec(part)?.[1]
    if (name !== undefined) {
      if (parameters.some((other) => other.name === name)) return `names the parameter {${name}} twice`
      parameters.push({ name, index })
      segments.push(null)
      continue
    }
    if (part === '' && (index < parts.length - 1 || rest)) return 'holds an empty segment'
    if (part.includes(';'))
      return 'holds a semicolon, which begins the parameters of a segment and is no part of its name'
    if (part === '.' || part === '..') return 'holds a dot segment'
    const foreign = /^:([A-Za-z]\w*)$/.exec(part)
    if (foreign) return `holds "${part}": a parameter is written {${foreign[1]}}`
    if (/[{}*?#\\%]/.test(part)) {
      return `holds "${part}": write a literal segment (unescaped), a whole {parameter}, or ** as the last segment`
    }
    segments.push(part)
  }
  return { text, segments, parameters, rest }
}
