import { z } from 'zod'
import type { CompileIssue } from '../engine/index.ts'

/**
 * Finds rules that compare `input.request.path` or `segments` with a literal. An API that accepts other spellings is
 * not protected by such a rule; compare `input.request.folded`. Follows OPA's intermediate representation from the
 * entrypoints. Heuristic: usual uses of a path, not all.
 */
export const pathComparisons = (plan: unknown, entrypoints?: readonly string[]): CompileIssue[] => {
  const { static: constants, plans, funcs } = planSchema.parse(plan)
  const textOf = (list: typeof constants.strings, index: number) => list?.[index]?.value
  const routines = new Map(funcs.funcs?.map((routine) => [routine.name, routine]))
  const found = new Map<string, Required<CompileIssue>>()
  const results = new Map<string, Kind>()

  /** What a rule or function gives when its parameters hold `given`. */
  const run = (name: string, { params, blocks }: Routine, given: readonly Kind[]): Kind => {
    const key = JSON.stringify([name, given])
    const known = results.get(key)
    if (known !== undefined) return known
    // Rules do not call themselves; should one ever, it ends here.
    results.set(key, 0)
    const held = new Map(params.map((local, index) => [local, given[index] ?? 0]))
    const hold = (local: number | undefined, kind: Kind): void => {
      if (local !== undefined) held.set(local, kind)
    }
    let result = 0
    const kindOf = (operand: unknown): Kind => {
      if (typeof operand === 'number') return held.get(operand) ?? 0
      const { type, value } = operandSchema.parse(operand)
      return type === 'string_index' ? literal : type === 'local' ? (held.get(Number(value)) ?? 0) : 0
    }
    const compare = (kinds: readonly Kind[], { file, row, col }: Statement) => {
      const [path, text] = [kinds.find((kind) => kind & (wholePath | segment)), kinds.find((kind) => kind & literal)]
      if (path === undefined || text === undefined) return
      const place = { file: textOf(constants.files, file) ?? '', line: row, column: col }
      const member = path & segment ? 'segments' : 'path'
      const message = `a literal is compared with input.request.${member}, which another spelling of the path gets past: compare input.request.folded.${member}`
      found.set(JSON.stringify(place), { ...place, message })
    }
    const walk = (list: Blocks): void => {
      for (const { stmts } of list) for (const { type, stmt } of stmts ?? []) step(type, stmt)
    }
    const step = (type: string, stmt: Statement): void => {
      const { source, key, value, target, args, func, a, b } = stmt
      if (type === 'EqualStmt' || type === 'NotEqualStmt') compare([kindOf(a), kindOf(b)], stmt)
      else if (type === 'ReturnLocalStmt') result |= kindOf(source)
      else if (type === 'CallStmt') {
        const kinds = args?.map(kindOf) ?? []
        const routine = routines.get(func ?? '')
        if (comparing.has(func ?? '')) compare(kinds, stmt)
        hold(stmt.result, routine ? run(routine.name, routine, kinds) : resultOf(func ?? '', kinds))
      } else if (type === 'DotStmt') {
        // Looking a text up in a literal compares it with each of its members.
        if (kindOf(source) & literal) compare([kindOf(source), kindOf(key)], stmt)
        const name = operandSchema.parse(key)
        const member = name.type === 'string_index' ? textOf(constants.strings, Number(name.value)) : undefined
        hold(target, memberOf(kindOf(source), member))
      } else if (type === 'AssignVarStmt' || type === 'AssignVarOnceStmt') hold(target, kindOf(source))
      else if (type === 'ScanStmt') {
        held.set(Number(value), memberOf(kindOf(source), undefined))
        held.set(Number(key), kindOf(source) & literal)
      } else if (type === 'SetAddStmt') hold(stmt.set, kindOf(stmt.set) | kindOf(value))
      else if (type === 'ArrayAppendStmt') hold(stmt.array, kindOf(stmt.array) | kindOf(value))
      // Only the names of an object count: another value of it is no path because a path is one.
      else if (type === 'ObjectInsertStmt') hold(stmt.object, kindOf(stmt.object) | kindOf(key))
      else hold(target, 0)
      walk([...(stmt.block ? [stmt.block] : []), ...(stmt.blocks ?? [])])
    }
    walk(blocks)
    results.set(key, result)
    return result
  }

  for (const { name, blocks } of plans.plans) {
    if (!entrypoints || entrypoints.includes(name)) run(name, { params: [0], blocks }, [input])
  }
  return [...found.values()].sort((one, other) => one.file.localeCompare(other.file) || one.line - other.line)
}

/** What a variable may hold, as a sum of these. */
type Kind = number
const literal = 1
const input = 2
const request = 4
const wholePath = 8
const segment = 16

const memberOf = (kind: Kind, name: string | undefined): Kind => {
  const inside = kind & (literal | segment)
  if (kind & input) return inside | (name === 'request' ? request : 0)
  if (kind & request) return inside | (name === 'path' ? wholePath : name === 'segments' ? segment : 0)
  return inside
}

const comparing = new Set(
  ['equal', 'eq', 'neq', 'internal.member_2', 'internal.member_3', 'startswith', 'endswith', 'contains'].concat([
    'regex.match',
    'glob.match',
    'indexof',
    'strings.any_prefix_match',
    'strings.any_suffix_match',
  ]),
)

/** Their results are still a path; of all other functions they are something else. */
const keeping = new Set(
  ['concat', 'split', 'substring', 'replace', 'array.slice', 'array.concat', 'array.reverse', 'urlquery.decode'].concat(
    ['trim', 'trim_left', 'trim_right', 'trim_prefix', 'trim_suffix', 'trim_space'],
  ),
)

const resultOf = (func: string, kinds: readonly Kind[]): Kind => {
  const all = kinds.reduce((sum, kind) => sum | kind, 0)
  // A single segment in small letters has one spelling left; a path may still end in a slash.
  if (func === 'lower' || func === 'upper') return all & wholePath
  return keeping.has(func) ? all & (wholePath | segment) : 0
}

const operandSchema = z.object({ type: z.string(), value: z.unknown() }).catch({ type: 'none', value: undefined })
const local = z.number().optional()
const statementSchema = z.looseObject({
  file: z.number().default(0),
  row: z.number().default(0),
  col: z.number().default(0),
  target: local,
  result: local,
  set: local,
  array: local,
  object: local,
  func: z.string().optional(),
  args: z.array(z.unknown()).nullish(),
  source: z.unknown().optional(),
  key: z.unknown().optional(),
  value: z.unknown().optional(),
  a: z.unknown().optional(),
  b: z.unknown().optional(),
  get block() {
    return blockSchema.nullish()
  },
  get blocks() {
    return z.array(blockSchema).nullish()
  },
})
const blockSchema = z.object({ stmts: z.array(z.object({ type: z.string(), stmt: statementSchema })).nullish() })
const texts = z.array(z.object({ value: z.string() })).nullish()
const routineSchema = z.object({ name: z.string(), params: z.array(z.number()), blocks: z.array(blockSchema) })
const planSchema = z.object({
  static: z.object({ strings: texts, files: texts }),
  plans: z.object({ plans: z.array(z.object({ name: z.string(), blocks: z.array(blockSchema) })) }),
  funcs: z.object({ funcs: z.array(routineSchema).nullish() }),
})

type Statement = z.infer<typeof statementSchema>
type Blocks = z.infer<typeof blockSchema>[]
type Routine = Pick<z.infer<typeof routineSchema>, 'params' | 'blocks'>
