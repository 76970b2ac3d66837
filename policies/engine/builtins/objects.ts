import type { Meter } from '../base/meter.ts'
import { asItems, asObject, asValue, refuse } from '../values/operands.ts'
import { equalValues, findKey, getMember, identityOf } from '../values/order.ts'
import { occurrences } from '../values/search.ts'
import type { RegoObject, RegoSet, Value } from '../values/value.ts'
import { weigh } from '../values/weight.ts'
import { type BuiltinTable, builtin } from './builtin.ts'

const holds = (set: RegoSet, item: Value): boolean => findKey(set, item) !== undefined

/** Members of objects are compared as subsets again where they are collections of the same kind. */
const isObjectSubset = (whole: RegoObject, part: RegoObject): boolean =>
  [...part].every(([key, member]) => {
    const other = getMember(whole, key)
    if (other === undefined) return false
    return isSameKind(other, member) ? isSubset(other, member) : equalValues(other, member)
  })

/** One list within the other, without gaps. */
const isRun = (whole: readonly Value[], part: readonly Value[]): boolean =>
  part.length === 0 || occurrences(whole.map(identityOf), part.map(identityOf)).length > 0

const isSameKind = (a: Value, b: Value): boolean =>
  (a instanceof Map && b instanceof Map) ||
  (a instanceof Set && b instanceof Set) ||
  (Array.isArray(a) && Array.isArray(b))

const isSubset = (whole: Value, part: Value): boolean => {
  if (whole instanceof Map && part instanceof Map) return isObjectSubset(whole, part)
  if (Array.isArray(whole) && Array.isArray(part)) return isRun(whole, part)
  if (whole instanceof Set && part instanceof Set) return [...part].every((item) => holds(whole, item))
  if (Array.isArray(whole) && part instanceof Set) return isSubset(new Set(whole), part)
  return refuse('both operands must be of the same type, or array and set')
}

/** A graph has a path for every way through it; their number grows with the power of its size. Paths. */
const mostPaths = 100_000

/**
 * Every way from a starting node to where it ends: at a node without neighbours, one that the graph lacks, or one seen
 * before.
 */
const reachablePaths = (graph: RegoObject, starts: readonly Value[], meter: Meter): RegoSet => {
  const { spend } = meter
  weigh([graph, ...starts], meter, timesToIdentify)
  const identities = remembering(identityOf)
  const neighbours = new Map([...graph].map(([node, others]) => [identities(node), others]))
  const paths: RegoSet = new Set()
  const path: Value[] = []
  const onPath = new Set<string>()

  const addPath = (): void => {
    spend(unitsForPath + path.length)
    paths.add([...path])
  }
  const follow = (node: Value): void => {
    const identity = identities(node)
    const isFirstTime = !onPath.has(identity)
    path.push(node)
    onPath.add(identity)
    const others = neighbours.get(identity)
    const nodes = Array.isArray(others) || others instanceof Set ? [...others] : []
    spend(unitsForPath + unitsForPath * nodes.length)
    if (paths.size >= mostPaths) refuse(`the graph has more than ${mostPaths} paths`)
    if (nodes.length === 0) addPath()
    for (const next of nodes) {
      const name = identities(next)
      // The first node may be its own neighbour once, as in OPA.
      const isVisited = path.length > 1 && onPath.has(name)
      if (!neighbours.has(name) || isVisited) addPath()
      else follow(next)
    }
    path.pop()
    if (isFirstTime) onPath.delete(identity)
  }
  for (const start of starts) if (neighbours.has(identities(start))) follow(start)
  return paths
}

const unitsForPath = 20
const timesToIdentify = 5

/** By reference: a graph names the same nodes over and over. */
const remembering = (identify: (value: Value) => string): ((value: Value) => string) => {
  const known = new Map<Value, string>()
  return (value) => {
    const before = known.get(value)
    if (before !== undefined) return before
    const identity = identify(value)
    known.set(value, identity)
    return identity
  }
}

export const objectBuiltins: BuiltinTable = {
  'graph.reachable_paths': builtin([asObject, asItems], reachablePaths),
  'object.subset': builtin([asValue, asValue], (whole, part, meter) => {
    weigh([whole, part], meter, timesToIdentify)
    return isSubset(whole, part)
  }),
}
