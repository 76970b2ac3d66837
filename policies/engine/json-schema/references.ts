import type { RegoObject, Value } from '../values/value.ts'

/** A schema and what can be referred to in it. */
export interface SchemaDocument {
  root: Value
  /** Schemas by `$id` (`id` in draft 4), as they were written and without an empty fragment. */
  named: ReadonlyMap<string, Value>
  /** Whatever may be a regular expression in it. */
  patterns: readonly string[]
}

export class SchemaError extends Error {}

export const schemaDocument = (root: Value): SchemaDocument => {
  const named = new Map<string, Value>()
  const patterns: string[] = []
  const collect = (value: Value): void => {
    if (Array.isArray(value)) for (const item of value) collect(item)
    if (!(value instanceof Map)) return
    for (const key of ['$id', 'id']) {
      const id = value.get(key)
      if (typeof id === 'string') named.set(id.replace(/#$/, ''), value)
    }
    const [one, many] = [value.get('pattern'), value.get('patternProperties')]
    if (typeof one === 'string') patterns.push(one)
    if (many instanceof Map) patterns.push(...[...many.keys()].filter((name) => typeof name === 'string'))
    for (const member of value.values()) collect(member)
  }
  collect(root)
  return { root, named, patterns }
}

/** Only what is in the document itself: a decision never waits for the network. */
export const resolveReference = ({ root, named }: SchemaDocument, from: RegoObject, reference: string): Value => {
  const [base = '', fragment = ''] = reference.split('#', 2)
  const start = base === '' ? root : named.get(base)
  const byId = named.get(reference)
  if (byId !== undefined) return byId
  if (start === undefined) throw new SchemaError(`${reference} is not in this schema`)
  const found = followPointer(start, decodeURIComponent(fragment))
  if (found === undefined || found === from) throw new SchemaError(`Object has no key '${reference}'`)
  return found
}

/** RFC 6901. */
const followPointer = (start: Value, pointer: string): Value | undefined =>
  pointer
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<Value | undefined>((at, token) => {
      if (at instanceof Map) return at.get(token)
      return Array.isArray(at) && /^(?:0|[1-9]\d*)$/.test(token) ? at[Number(token)] : undefined
    }, start)
