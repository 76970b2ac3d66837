import type { Mask } from '../config/settings/logs.ts'
import { nameRecord } from '../request/name-record.ts'

/**
 * Changes `event`. Returns the pointers that were there, as OPA's events list them: left out, or with another value in
 * their place.
 */
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

/** What carries credentials by its name (RFC 6749, RFC 6750 §2.3, signed URLs of object stores). */
const credentialName =
  /token|secret|passw|pwd|api[-_]?key|assertion|signature|credential|^(?:key|code|sig|jwt|auth|session(?:[-_]?id)?|sid)$/i
/** What is a credential wherever it stands: a JWT, a personal access token. */
const credential = /eyJ[\w-]{6,}\.[\w-]+\.|pat_[\w-]{16}/
/** The names within a value that is itself a URL, or was taken apart at `;` by others. */
const namesWithin = /[?&;#]([^=?&;#]{1,64})=/g
const redacted = '[redacted]'

const holdsCredential = (value: string): boolean =>
  credential.test(value) || [...value.matchAll(namesWithin)].some(([, name]) => credentialName.test(name!))

/** Names with their values, as policies see the query and header fields. */
export type Fields = Record<string, string[]>

/** The fields with credentials replaced, and pointers to them below `pointer`; undefined when there are none. */
export const withoutCredentials = (
  fields: Fields,
  pointer: string,
): { fields: Fields; masked: string[] } | undefined => {
  const suspicious = Object.keys(fields).filter(
    (name) => credentialName.test(name) || credential.test(name) || fields[name]!.some(holdsCredential),
  )
  if (suspicious.length === 0) return undefined
  const clean: Fields = nameRecord<string[]>()
  const masked: string[] = []
  for (const name in fields) {
    const values = fields[name]!
    const shown = credential.test(name) ? redacted : name
    if (!suspicious.includes(name)) clean[name] = values
    else {
      clean[shown] = [...(clean[shown] ?? []), ...values.map(() => redacted)]
      masked.push(`${pointer}/${shown.replaceAll('~', '~0').replaceAll('/', '~1')}`)
    }
  }
  return { fields: clean, masked }
}
