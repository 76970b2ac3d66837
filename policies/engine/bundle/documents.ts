import { PolicyError } from '../base/policy-error.ts'

/**
 * The documents among these files, put together: `a/b/data.json` is what rules know as `data.a.b`. Throws
 * `PolicyError`.
 */
export const documentsOf = (files: ReadonlyMap<string, Uint8Array>): unknown => {
  const names = [...files.keys()].filter((name) => name === 'data.json' || name.endsWith('/data.json'))
  const root: Record<string, unknown> = {}
  for (const name of names.sort((a, b) => a.split('/').length - b.split('/').length)) {
    const document = jsonFile(files, name)
    if (!isObject(document)) throw new PolicyError(`${name} is not a JSON object`)
    const path = name.split('/').slice(0, -1)
    merge(root, path.reduceRight(memberOf, document), name)
  }
  return root
}

/** Throws `PolicyError` when it is there and not JSON. */
export const jsonFile = (files: ReadonlyMap<string, Uint8Array>, name: string): unknown => {
  const content = files.get(name)
  if (!content) return undefined
  try {
    return JSON.parse(decoder.decode(content))
  } catch (error) {
    throw new PolicyError(`${name} is not valid JSON`, { cause: error })
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

const merge = (into: Record<string, unknown>, from: Record<string, unknown>, name: string): void => {
  for (const [key, value] of Object.entries(from)) {
    const present = Object.hasOwn(into, key) ? into[key] : undefined
    if (present === undefined) setMember(into, key, value)
    else if (isObject(present) && isObject(value)) merge(present, value, name)
    else throw new PolicyError(`${name} overlaps other data`)
  }
}

const memberOf = (value: Record<string, unknown>, key: string): Record<string, unknown> => {
  const object = {}
  setMember(object, key, value)
  return object
}

/** An assignment to `__proto__` would not make a member. */
const setMember = (object: object, key: string, value: unknown): void => {
  Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
