import { asArray, asObject, asString, refuse } from '../values/operands.ts'
import {
  compareValues,
  equalValues,
  findKey,
  isNumber,
  type RegoObject,
  toInteger,
  type Value,
} from '../values/values.ts'
import type { HostBuiltin } from './index.ts'

/**
 * RFC 6902 as OPA has it: paths may be arrays of keys of any kind, lead into sets (whose keys are their items), and as texts may lack
 * the first slash. Nothing is changed in place: every operation answers with a new document.
 */
type Path = readonly Value[]

const asPath = (value: Value | undefined): Path => {
  if (Array.isArray(value)) return value
  const text = asString(value)
  if (text === '') return []
  return text
    .replace(/^\/+(?=.)|^\/$/, (slashes) => (slashes === text ? '\0' : ''))
    .replace('\0', '')
    .split('/')
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** The place in an array that a key means; `-` is behind the last item. */
const indexOf = (items: readonly Value[], key: Value): number => {
  if (isNumber(key)) return Number(toInteger(key) ?? refuse('an index must be an integer'))
  if (key === '-') return items.length
  if (typeof key !== 'string' || !/^-?\d+$/.test(key)) return refuse('an index must be an integer')
  if (/^-?0\d/.test(key)) refuse('leading zeros are not allowed')
  return Number(key)
}

const within = (index: number, length: number): number =>
  index >= 0 && index < length ? index : refuse('the index is out of bounds')

const get = (value: Value, path: Path): Value =>
  path.reduce<Value>((at, key) => {
    if (Array.isArray(at)) return at[within(indexOf(at, key), at.length)]!
    const isCollection = at instanceof Map || at instanceof Set
    // The member may be null, which is no reason to miss it.
    const found = (isCollection && findKey(at, key)) || refuse('the path does not exist')
    return at instanceof Map ? at.get(found.key)! : found.key
  }, value)

/** Runs `change` at the end of the path, on the collection and the last key. */
const changeAt = (value: Value, path: Path, change: (parent: Value, key: Value) => Value): Value => {
  const [key, ...rest] = path
  if (rest.length === 0) return change(value, key!)
  const inner = changeAt(get(value, [key!]), rest, change)
  if (value instanceof Map) return new Map(value).set(findKey(value, key!)!.key, inner)
  if (value instanceof Set) return new Set([...value].map((item) => (equalValues(item, key!) ? inner : item)))
  return (value as Value[]).with(indexOf(value as Value[], key!), inner)
}

const add = (value: Value, path: Path, added: Value): Value => {
  if (path.length === 0) return added
  return changeAt(value, path, (parent, key) => {
    if (parent instanceof Map) return new Map(parent).set(findKey(parent, key)?.key ?? key, added)
    if (parent instanceof Set) {
      if (compareValues(key, added) !== 0) refuse('the key of a set must equal the value')
      return new Set([...parent, added])
    }
    if (!Array.isArray(parent)) return refuse('the path does not exist')
    return parent.toSpliced(within(indexOf(parent, key), parent.length + 1), 0, added)
  })
}

const remove = (value: Value, path: Path): Value => {
  if (path.length === 0) return refuse('the whole document cannot be removed')
  return changeAt(value, path, (parent, key) => {
    if (Array.isArray(parent)) return parent.toSpliced(within(indexOf(parent, key), parent.length), 1)
    if (!(parent instanceof Map) && !(parent instanceof Set)) return refuse('the path does not exist')
    const found = findKey(parent, key) ?? refuse('the path does not exist')
    const copy = parent instanceof Map ? new Map(parent) : new Set(parent)
    copy.delete(found.key)
    return copy
  })
}

/** In an array the new value takes the old one's place, also at `-`… which is behind the last one and so cannot be replaced. */
const replace = (value: Value, path: Path, added: Value): Value =>
  path.length === 0 ? added : add(remove(value, path), path, added)

const required = (operation: RegoObject, name: string): Value =>
  operation.has(name) ? operation.get(name)! : refuse(`missing attribute ${name}`)

const operations: Record<string, (value: Value, path: Path, operation: RegoObject) => Value> = {
  add: (value, path, operation) => add(value, path, required(operation, 'value')),
  remove,
  replace: (value, path, operation) => replace(value, path, required(operation, 'value')),
  copy: (value, path, operation) => add(value, path, get(value, asPath(required(operation, 'from')))),
  move: (value, path, operation) => {
    const from = asPath(required(operation, 'from'))
    return add(remove(value, from), path, get(value, from))
  },
  test: (value, path, operation) =>
    equalValues(get(value, path), required(operation, 'value')) ? value : refuse('the test failed'),
}

export const jsonPatchBuiltins: Record<string, HostBuiltin> = {
  'json.patch': ([document, patches]) =>
    asArray(patches)
      .map(asObject)
      .reduce<Value>((value, operation) => {
        const name = asString(required(operation, 'op'))
        const apply = Object.hasOwn(operations, name) ? operations[name]! : refuse('unknown operation')
        return apply(value, asPath(required(operation, 'path')), operation)
      }, document!),
}
