import { asItems, asObject, asValue, refuse } from '../values/operands.ts'
import { equalValues, findKey, getMember } from '../values/order.ts'
import type { RegoObject, RegoSet, Value } from '../values/value.ts'
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
  part.length === 0 ||
  whole.some(
    (_, from) =>
      from + part.length <= whole.length &&
      whole.slice(from, from + part.length).every((item, index) => equalValues(item, part[index] as Value)),
  )

const isSameKind = (a: Value, b: Value): boolean =>
  (a instanceof Map && b instanceof Map) ||
  (a instanceof Set && b instanceof Set) ||
  (Array.isArray(a) && Array.isArray(b))

const isSubset = (whole: Value, part: Value): boolean => {
  if (whole instanceof Map && part instanceof Map) return isObjectSubset(whole, part)
  if (Array.isArray(whole) && Array.isArray(part)) return isRun(whole, part)
  if (whole instanceof Set && part instanceof Set) return [...part].every((item) => holds(whole, item))
  if (Array.isArray(whole) && part instanceof Set) return [...part].every((item) => holds(new Set(whole), item))
  return refuse('both operands must be of the same type, or array and set')
}

/** A graph has a path for every way through it; their number grows with the power of its size. Paths. */
const mostPaths = 100_000

/**
 * Every way from a starting node to where it ends: at a node without neighbours, one that the graph lacks, or one seen
 * before.
 */
const reachablePaths = (graph: RegoObject, starts: readonly Value[]): RegoSet => {
  const paths: RegoSet = new Set()
  const follow = (last: Value, path: Value[]): void => {
    const neighbours = getMember(graph, last)
    const nodes = Array.isArray(neighbours) || neighbours instanceof Set ? [...neighbours] : []
    if (paths.size >= mostPaths) refuse(`the graph has more than ${mostPaths} paths`)
    if (nodes.length === 0) paths.add(path)
    for (const node of nodes) {
      const isKnown = getMember(graph, node) !== undefined
      // The first node may be its own neighbour once, as in OPA.
      const isVisited = path.length > 1 && path.some((earlier) => equalValues(earlier, node))
      if (!isKnown || isVisited) paths.add(path)
      else follow(node, [...path, node])
    }
  }
  for (const start of starts) if (getMember(graph, start) !== undefined) follow(start, [start])
  return paths
}

export const objectBuiltins: BuiltinTable = {
  'graph.reachable_paths': builtin([asObject, asItems], reachablePaths),
  'object.subset': builtin([asValue, asValue], isSubset),
}
