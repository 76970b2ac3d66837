import { type DocumentNode, Kind, visit } from 'graphql/language'
import type { Meter } from '../base/meter.ts'
import type { SchemaParts } from './schema.ts'

/** Of a node of a document: the rules look at it one after the other. */
const unitsForNode = 180
/** Of two fields of one name, which are compared wherever they may meet. */
const unitsForPair = 5
/** Of a node that a fragment brings to where it is spread, or of a fragment that is looked for. */
const unitsForSpread = 5

/**
 * Pays for the rules that a query is judged by, before they run, since nothing can end them. Some compare fields with
 * all others of their name, some follow fragments to wherever they lead, some look at all arguments of a field.
 */
export const payForQuery = (query: DocumentNode, schema: SchemaParts, { spend }: Meter): void => {
  const fields = new Map<string, number>()
  const fragments = new Map<string, Contents>()
  let nodes = 0
  let operations = 0
  let spreads = 0
  let asksForSchema = false
  let current = contents()
  const roots: Contents[] = []
  visit(query, {
    enter(node) {
      nodes++
      current.nodes++
      if (node.kind === Kind.OPERATION_DEFINITION) {
        operations++
        current = contents()
        roots.push(current)
      } else if (node.kind === Kind.FRAGMENT_DEFINITION) {
        current = contents()
        fragments.set(node.name.value, current)
      } else if (node.kind === Kind.FRAGMENT_SPREAD) {
        spreads++
        current.spreads.push(node.name.value)
      } else if (node.kind === Kind.INLINE_FRAGMENT) spreads++
      else if (node.kind === Kind.FIELD) {
        if (node.name.value.startsWith('__')) asksForSchema = true
        const name = (node.alias ?? node.name).value
        fields.set(name, (fields.get(name) ?? 0) + 1)
      }
    },
  })
  const pairs = [...fields.values()].reduce((sum, count) => sum + count * count, 0)
  const sought = (spreads + operations) * (fragments.size + schema.types.size)
  // The depth of what asks for the schema is found by following each spread anew.
  const brought = asksForSchema ? roots.reduce((sum, root) => sum + expanded(root, fragments, new Map()), 0) : 0
  spend(nodes * (unitsForNode + Math.ceil(widest(schema) / 2)))
  spend(unitsForPair * pairs)
  spend(unitsForSpread * Math.min(sought + brought, Number.MAX_SAFE_INTEGER / 100))
}

/** What an operation or fragment holds itself. */
interface Contents {
  nodes: number
  spreads: string[]
}

const contents = (): Contents => ({ nodes: 0, spreads: [] })

/** The number of nodes when every fragment is put where it is spread; a ring ends where it began. */
const expanded = (
  { nodes, spreads }: Contents,
  fragments: ReadonlyMap<string, Contents>,
  known: Map<string, number>,
): number =>
  spreads.reduce((sum, name) => {
    const fragment = fragments.get(name)
    if (fragment && !known.has(name)) {
      known.set(name, 0)
      known.set(name, expanded(fragment, fragments, known))
    }
    return sum + (known.get(name) ?? 0)
  }, nodes)

/** The largest number of members of a type, or of arguments of a field or directive. */
const widest = ({ types, directives }: SchemaParts): number => {
  let most = 0
  for (const { fields, values } of types.values()) {
    most = Math.max(most, fields.length, values.length)
    for (const field of fields) {
      if (field.kind === Kind.FIELD_DEFINITION) most = Math.max(most, field.arguments?.length ?? 0)
    }
  }
  for (const { arguments: list } of directives.values()) most = Math.max(most, list?.length ?? 0)
  return most
}
