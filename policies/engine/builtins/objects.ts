import { asItems, asObject, refuse } from '../values/operands.ts'
import { equalValues, findKey, type RegoObject, type RegoSet, type Value } from '../values/values.ts'
import type { HostBuiltin } from './index.ts'

const holds = (set: RegoSet, item: Value): boolean => findKey(set, item) !== undefined

const getMember = (object: RegoObject, key: Value): Value | undefined => {
  const found = findKey(object, key)
  return found && object.get(found.key)
}

/** Members of objects are compared as subsets again where they are collections of the same kind. */
const isObjectSubset = (whole: RegoObject, part: RegoObject): boolean =>
  [...part].every(([key, member]) => {
    const other = getMember(whole, key)
    if (other === undefined) return false
    return isSameKind(other, member) ? isSubset(other, member) : equalValues(other, member)
  })

/** One list within the other, without gaps. */
const isRun = (whole: Value[], part: Value[]): boolean => {
  for (let from = 0; from + part.length <= whole.length; from++) {
    if (part.every((item, index) => equalValues(item, whole[from + index]!))) return true
  }
  return false
}

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

/** Every way from a starting node to where it ends: at a node without neighbours, one that the graph lacks, or one seen before. */
const reachablePaths = (graph: RegoObject, starts: readonly Value[]): RegoSet => {
  const paths: RegoSet = new Set()
  const follow = (path: Value[]): void => {
    const neighbours = getMember(graph, path.at(-1)!)
    const nodes = Array.isArray(neighbours) || neighbours instanceof Set ? [...neighbours] : []
    if (paths.size >= mostPaths) refuse(`the graph has more than ${mostPaths} paths`)
    if (nodes.length === 0) paths.add(path)
    for (const node of nodes) {
      const isKnown = getMember(graph, node) !== undefined
      // The first node may be its own neighbour once, as in OPA.
      const isVisited = path.length > 1 && path.some((earlier) => equalValues(earlier, node))
      if (!isKnown || isVisited) paths.add(path)
      else follow([...path, node])
    }
  }
  for (const start of starts) if (getMember(graph, start) !== undefined) follow([start])
  return paths
}

export const objectBuiltins: Record<string, HostBuiltin> = {
  'graph.reachable_paths': ([graph, starts]) => reachablePaths(asObject(graph), asItems(starts)),
  'object.subset': ([whole, part]) => isSubset(whole!, part!),
}
