/** What the log must not hold: members that the operator names by JSON pointer (RFC 6901), and credentials in query strings. */
export type Mask = string | { path: string; value: unknown }

/** Changes `event`. Returns the pointers that were there, as OPA's events list them: left out, or with another value in their place. */
export type ApplyMasks = (event: object) => { erased?: string[]; masked?: string[] }

export const createMasks = (masks: readonly Mask[]): ApplyMasks => {
  const rows = masks.map((mask) => {
    const { path: text, ...change } = typeof mask === 'string' ? { path: mask } : mask
    return { text, steps: pointerSteps(text), change: change as { value?: unknown } }
  })
  return (event) => {
    const erased: string[] = []
    const masked: string[] = []
    for (const { text, steps, change } of rows) {
      const parent = parentOf(event, steps)
      const last = steps.at(-1)!
      if (!parent || !Object.hasOwn(parent, last)) continue
      if ('value' in change) {
        parent[last] = change.value
        masked.push(text)
      } else {
        // An element of a list leaves null behind: the others keep their places.
        if (Array.isArray(parent)) parent[Number(last)] = null
        else delete parent[last]
        erased.push(text)
      }
    }
    return { ...(erased.length > 0 && { erased }), ...(masked.length > 0 && { masked }) }
  }
}

/** RFC 6901 §4. */
const pointerSteps = (pointer: string): string[] => pointer.split('/').slice(1).map(unescaped)
const unescaped = (step: string): string => step.replaceAll('~1', '/').replaceAll('~0', '~')

const parentOf = (event: object, steps: readonly string[]): Record<string, unknown> | undefined => {
  let parent: unknown = event
  for (const step of steps.slice(0, -1)) {
    if (typeof parent !== 'object' || parent === null || !Object.hasOwn(parent, step)) return undefined
    parent = (parent as Record<string, unknown>)[step]
  }
  return typeof parent === 'object' && parent !== null ? (parent as Record<string, unknown>) : undefined
}

/** Parameters that carry credentials by their name (RFC 6749, RFC 6750 §2.3, signed URLs of object stores), and values that are JWTs. */
const credentialName =
  /token|secret|passw|pwd|api[-_]?key|assertion|signature|credential|^(?:key|code|sig|jwt|auth|session(?:[-_]?id)?|sid)$/i
const jwt = /^eyJ[\w-]*\.[\w-]+\.[\w-]*$/
const redacted = '[redacted]'

export type Query = Record<string, string[]>

/** The query with credentials replaced, and pointers to them; undefined when there are none. */
export const withoutCredentials = (query: Query): { query: Query; masked: string[] } | undefined => {
  let found: { query: Query; masked: string[] } | undefined
  for (const name in query) {
    const values = query[name]!
    if (!credentialName.test(name) && !values.some((value) => jwt.test(value))) continue
    found ??= { query: { ...query }, masked: [] }
    found.query[name] = values.map(() => redacted)
    found.masked.push(`/input/request/query/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`)
  }
  return found
}
