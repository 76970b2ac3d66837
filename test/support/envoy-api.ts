import { readFileSync } from 'node:fs'

/**
 * The messages and enums of Envoy's API that our files use, by full name: of a message each field's type and kind, of
 * an enum its names. Made from the definitions that @grpc/grpc-js-xds 1.14.1 brings.
 */
type EnvoyApi = Record<string, string[] | Record<string, [type: string, kind: string]>>

const api: EnvoyApi = JSON.parse(readFileSync(new URL('./envoy-api.json', import.meta.url), 'utf8'))

/** Types with a form of their own in JSON. */
const wellKnown: Record<string, (value: unknown) => boolean> = {
  'google.protobuf.Duration': (value) => typeof value === 'string' && /^\d+(?:\.\d+)?s$/.test(value),
  'google.protobuf.BoolValue': (value) => typeof value === 'boolean',
  'google.protobuf.UInt32Value': (value) => Number.isInteger(value),
}
const scalars: Record<string, (value: unknown) => boolean> = {
  string: (value) => typeof value === 'string',
  bool: (value) => typeof value === 'boolean',
  uint32: (value) => Number.isInteger(value) && (value as number) >= 0,
}

/**
 * What Envoy would refuse of a message written as JSON or YAML: unknown fields, values of another type or enum, two
 * members of a oneof. Empty: nothing. `used` collects the names of the types that it met.
 */
export const problemsOf = (type: string, value: unknown, path = type, used = new Set<string>()): string[] => {
  const check = wellKnown[type] ?? scalars[type]
  if (check) return check(value) ? [] : [`${path}: no ${type}`]
  if (type === 'google.protobuf.Any') {
    const { '@type': url = '', ...rest } = value as Record<string, string>
    return problemsOf(url.replace('type.googleapis.com/', ''), rest, path, used)
  }
  const definition = api[type]
  if (!definition) return [`${path}: the type ${type} is not known here`]
  used.add(type)
  if (Array.isArray(definition)) return definition.includes(String(value)) ? [] : [`${path}: ${value} is no ${type}`]
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${path}: no message`]
  const oneofs = new Set<string>()
  return Object.entries(value).flatMap(([name, member]) => {
    const field = definition[name]
    if (!field) return [`${path}.${name}: no such field of ${type}`]
    const [fieldType, kind] = field
    if (kind.startsWith('oneof ') && oneofs.size === oneofs.add(kind).size) return [`${path}.${name}: a second ${kind}`]
    if (kind !== 'repeated' && kind !== 'map') return problemsOf(fieldType, member, `${path}.${name}`, used)
    if (Array.isArray(member) !== (kind === 'repeated')) return [`${path}.${name}: not ${kind}`]
    const members = Object.entries(member as object)
    return members.flatMap(([key, one]) => problemsOf(fieldType, one, `${path}.${name}.${key}`, used))
  })
}
