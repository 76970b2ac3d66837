import type { z } from 'zod'
import { type GatewayFile, gatewayFile } from './settings/file.ts'

/**
 * The part of a file with mistakes that can be read, so that mistakes between its members are reported together with
 * the others.
 */
export interface ReadablePart {
  file: GatewayFile
  /** A path in `file` as a path in the whole file: left-out entries count there. */
  original(path: readonly PropertyKey[]): readonly PropertyKey[]
}

type Members = Record<string, unknown>

/** Sections that others refer to: with a mistake in one of them, everything that refers to it would look wrong too. */
const referredTo = new Set([
  'version',
  'issuers',
  'forwardAuth',
  'extAuthz',
  'identity',
  'trustedProxies',
  'allowInsecure',
  'policies',
])

/** Undefined: too little is left to be checked. */
export const readablePart = (value: unknown, { issues }: z.ZodError): ReadablePart | undefined => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const rest: Members = structuredClone(value as Members)
  const leftOut = new Set<number>()
  const unreadable = new Set<string>()
  for (const issue of issues) {
    if (issue.code === 'unrecognized_keys') {
      const parent = memberAt(rest, issue.path)
      for (const key of issue.keys) delete parent?.[key]
      continue
    }
    const [section, entry] = issue.path
    if (section === undefined || referredTo.has(String(section))) return undefined
    if (section === 'routes' || section === 'upstreams') {
      if (entry === undefined) return undefined
      if (section === 'routes') leftOut.add(entry as number)
      else if (issue.code === 'invalid_key') delete (rest['upstreams'] as Members)[String(entry)]
      else {
        ;(rest['upstreams'] as Members)[String(entry)] = placeholder
        unreadable.add(String(entry))
      }
    } else delete rest[String(section)]
  }
  const routes: Members[] | undefined = Array.isArray(rest['routes']) ? rest['routes'] : undefined
  const kept = routes ? [...routes.keys()].filter((index) => !leftOut.has(index)) : []
  const withoutTargets = (route: Members): Members => {
    const { targets, ...others } = route
    return unreadable.has(String(others['upstream'])) ? others : route
  }
  const parsed = gatewayFile.safeParse(
    routes ? { ...rest, routes: kept.map((index) => withoutTargets(routes[index]!)) } : rest,
  )
  if (!parsed.success) return undefined
  return {
    file: parsed.data,
    original: ([section, index, ...deeper]) =>
      section === 'routes'
        ? [section, kept[index as number]!, ...deeper]
        : [section!, ...(index === undefined ? [] : [index]), ...deeper],
  }
}

/** Keeps the name of an upstream that cannot be read: routes may go there. Which targets it has is not known. */
const placeholder = { url: 'http://localhost' }

const memberAt = (value: unknown, path: readonly PropertyKey[]): Members | undefined => {
  let found: unknown = value
  for (const step of path) {
    if (typeof found !== 'object' || found === null) return undefined
    found = (found as Record<PropertyKey, unknown>)[step]
  }
  return typeof found === 'object' && found !== null ? (found as Members) : undefined
}
