import type { Meter } from '../base/meter.ts'
import { asArray, asObject, asString, asValue, refuse } from '../values/operands.ts'
import { compareValues, equalValues, findKey, getMember } from '../values/order.ts'
import { isNumber, type RegoObject, toInteger, type Value } from '../values/value.ts'
import { weigh } from '../values/weight.ts'
import { type BuiltinTable, builtin } from './builtin.ts'

/**
 * RFC 6902 as OPA has it: paths may be arrays of keys of any kind, lead into sets (whose keys are their items), and as
 * texts may lack the first slash. Nothing is changed in place: every operation answers with a new document.
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

/** The part of a collection under a key; refuses where there is none. */
const partAt = (value: Value, key: Value): Value => {
  if (Array.isArray(value)) return required(value[within(indexOf(value, key), value.length)])
  if (value instanceof Map) return required(getMember(value, key))
  const found = value instanceof Set ? findKey(value, key) : undefined
  return found ? found.key : missing()
}

const missing = (): never => refuse('the path does not exist')

/** The value that was found, which may be null. */
const required = (found: Value | undefined): Value => (found === undefined ? missing() : found)

/** To make a copy with one part changed, or to find a part by a key that is no text. */
const costOf = (collection: Value, key: Value): number => {
  if (Array.isArray(collection)) return unitsForStep + Math.ceil(collection.length / 4)
  const size = collection instanceof Map || collection instanceof Set ? collection.size : 0
  return unitsForStep + size * (typeof key === 'string' ? 10 : 50)
}

const unitsForStep = 50

const get = (value: Value, path: Path, { spend }: Meter): Value =>
  path.reduce((part, key) => {
    spend(typeof key === 'string' ? unitsForStep : costOf(part, key))
    return partAt(part, key)
  }, value)

type Change = (parent: Value, key: Value) => Value

/** Runs `change` at the end of the path, on the collection and the last key. */
const changeAt = (value: Value, path: Path, meter: Meter, change: Change, from = 0): Value => {
  const key = path[from]
  if (key === undefined) return missing()
  meter.spend(costOf(value, key))
  if (from === path.length - 1) return change(value, key)
  const inner = changeAt(partAt(value, key), path, meter, change, from + 1)
  if (value instanceof Map) return new Map(value).set(findKey(value, key)?.key ?? key, inner)
  if (value instanceof Set) return new Set([...value].map((item) => (equalValues(item, key) ? inner : item)))
  return Array.isArray(value) ? value.with(indexOf(value, key), inner) : missing()
}

const add = (value: Value, path: Path, added: Value, meter: Meter): Value => {
  if (path.length === 0) return added
  return changeAt(value, path, meter, (parent, key) => {
    if (parent instanceof Map) return new Map(parent).set(findKey(parent, key)?.key ?? key, added)
    if (parent instanceof Set) {
      if (compareValues(key, added) !== 0) refuse('the key of a set must equal the value')
      return new Set([...parent, added])
    }
    if (!Array.isArray(parent)) return refuse('the path does not exist')
    return parent.toSpliced(within(indexOf(parent, key), parent.length + 1), 0, added)
  })
}

const remove = (value: Value, path: Path, meter: Meter): Value => {
  if (path.length === 0) return refuse('the whole document cannot be removed')
  return changeAt(value, path, meter, (parent, key) => {
    if (Array.isArray(parent)) return parent.toSpliced(within(indexOf(parent, key), parent.length), 1)
    if (!(parent instanceof Map) && !(parent instanceof Set)) return refuse('the path does not exist')
    const found = findKey(parent, key) ?? refuse('the path does not exist')
    const copy = parent instanceof Map ? new Map(parent) : new Set(parent)
    copy.delete(found.key)
    return copy
  })
}

/**
 * In an array the new value takes the old one's place, also at `-`… which is behind the last one and so cannot be
 * replaced.
 */
const replace = (value: Value, path: Path, added: Value, meter: Meter): Value =>
  path.length === 0 ? added : add(remove(value, path, meter), path, added, meter)

const attribute = (operation: RegoObject, name: string): Value => {
  const value = operation.get(name)
  return value === undefined ? refuse(`missing attribute ${name}`) : value
}

type Apply = (value: Value, path: Path, operation: RegoObject, meter: Meter) => Value

const operations = new Map<string, Apply>(
  Object.entries<Apply>({
    add: (value, path, operation, meter) => add(value, path, attribute(operation, 'value'), meter),
    remove: (value, path, _operation, meter) => remove(value, path, meter),
    replace: (value, path, operation, meter) => replace(value, path, attribute(operation, 'value'), meter),
    copy: (value, path, operation, meter) => {
      const copied = get(value, asPath(attribute(operation, 'from')), meter)
      // Twenty copies of copies are a million.
      weigh(copied, meter)
      return add(value, path, copied, meter)
    },
    move: (value, path, operation, meter) => {
      const from = asPath(attribute(operation, 'from'))
      return add(remove(value, from, meter), path, get(value, from, meter), meter)
    },
    test: (value, path, operation, meter) => {
      const wanted = attribute(operation, 'value')
      weigh(wanted, meter, timesToCompare)
      return equalValues(get(value, path, meter), wanted) ? value : refuse('the test failed')
    },
  }),
)

const timesToCompare = 5

const apply = (value: Value, operation: RegoObject, meter: Meter): Value => {
  const name = asString(attribute(operation, 'op'))
  const run = operations.get(name) ?? refuse('unknown operation')
  return run(value, asPath(attribute(operation, 'path')), operation, meter)
}

export const jsonPatchBuiltins: BuiltinTable = {
  'json.patch': builtin([asValue, asArray], (document, patches, meter) =>
    patches.map(asObject).reduce((value, operation) => apply(value, operation, meter), document),
  ),
}
