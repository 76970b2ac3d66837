import type { PolicySet } from '../policy-set.ts'
import { invalid } from './api-error.ts'
import { decodedParts } from './target.ts'

/** A document that can be asked for: the result of an entrypoint, or a member of it. */
export interface Document {
  /** With slashes, as decision logs name it. */
  path: string
  entrypoint: string
  /** The way from the result to what is asked for. */
  members: readonly string[]
}

/**
 * The document that a path names, such as `gateway/decision/allow`. Throws `ApiError` for everything that is no
 * entrypoint and below none: OPA answers such paths with whatever is there, often `{}`, which clients may take for
 * "not denied".
 */
export const findDocument = (set: PolicySet, path: string): Document => {
  const names = namesOf(set)
  if (names.has(path)) return { path, entrypoint: path, members: [] }
  const parts = decodedParts(path)
  for (let length = parts.length; length > 0; length--) {
    // A part with a slash of its own would make the name of another document.
    if (parts.slice(0, length).some((part) => part.includes('/'))) continue
    const entrypoint = parts.slice(0, length).join('/')
    if (names.has(entrypoint)) return { path: parts.join('/'), entrypoint, members: parts.slice(length) }
  }
  const name = ['data', ...parts].filter((part) => part !== '').join('.')
  throw invalid(`${name} is no entrypoint: ${advice(set, parts.join('/'))}`)
}

const namesOf = (set: PolicySet): ReadonlySet<string> => {
  const found = known.get(set) ?? new Set(set.entrypoints)
  known.set(set, found)
  return found
}

const known = new WeakMap<PolicySet, ReadonlySet<string>>()

/** Entrypoints that an error names, at most. */
const mostNamed = 10

const advice = ({ entrypoints }: PolicySet, path: string): string => {
  const below = entrypoints.filter((name) => path === '' || name.startsWith(`${path}/`))
  const named = (below.length > 0 ? below : entrypoints).slice(0, mostNamed).join(', ')
  if (below.length > 0) return `ask for one of the entrypoints below it: ${named}`
  return `annotate the rule with "# METADATA" and "# entrypoint: true". There are: ${named}`
}

/**
 * The member of a result, undefined where there is none. Throws `ApiError` for members of lists and for numbers: a set
 * of Rego is a list in JSON, and a number a text as key, so that the answer could be another one than OPA's.
 */
export const memberOf = (result: unknown, { entrypoint, members }: Document): unknown => {
  let value = result
  for (const member of members) {
    if (typeof value !== 'object' || value === null) return undefined
    if (Array.isArray(value) || /^-?\d+$/.test(member)) {
      throw invalid(`ask for data.${entrypoint.replaceAll('/', '.')}: elements of lists, sets and numbers have no path`)
    }
    value = Object.hasOwn(value, member) ? (value as Record<string, unknown>)[member] : undefined
  }
  return value
}
