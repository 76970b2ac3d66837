import { z } from 'zod'
import { type InputPaths, type InputReads, isObject } from '../base/input-reads.ts'

/**
 * Finds which parts of the input an entrypoint can read, in OPA's intermediate representation of the compiled rules.
 * Writing and parsing the input as JSON is more than half of a decision's cost; the shipped policy reads 4 of some 30
 * members.
 *
 * The analysis may name too much, never too little: whatever it does not recognise counts as reading the whole.
 */

/** `plan.json` of `opa build -t plan` → the reads of each entrypoint, two steps deep. */
export const inputReads = (plan: unknown): Record<string, InputReads> =>
  Object.fromEntries(Object.entries(inputPaths(plan)).map(([name, paths]) => [name, membersOf(paths)]))

/** The same as deep as rules name members. */
export const inputPaths = (plan: unknown): Record<string, InputPaths> => {
  const { static: constants, plans, funcs } = planSchema.parse(plan)
  const functions = new Map(funcs.funcs.map((func) => [func.name, func]))
  const strings = constants?.strings?.map(({ value }) => value) ?? []
  return Object.fromEntries(
    plans.plans.map(({ name, blocks }) => [name, pathsOf({ blocks, params: [inputLocal] }, functions, strings)]),
  )
}

const statementsSchema = z.object({ stmts: z.array(z.object({ type: z.string(), stmt: z.looseObject({}) })).nullish() })
const blocksSchema = z.array(statementsSchema)
const functionSchema = z.object({ name: z.string(), params: z.array(z.number()), blocks: blocksSchema })
const planSchema = z.object({
  static: z.object({ strings: z.array(z.object({ value: z.string() })).nullish() }).nullish(),
  plans: z.object({ plans: z.array(z.object({ name: z.string(), blocks: blocksSchema })) }),
  funcs: z.object({
    funcs: z
      .array(functionSchema)
      .nullish()
      .transform((list) => list ?? []),
  }),
})

type Routine = Pick<z.infer<typeof functionSchema>, 'params' | 'blocks'>
type Blocks = z.infer<typeof blocksSchema>
type Fields = Record<string, unknown>

/** The local variable that holds the input, in plans and (first parameter) in the functions that rules become. */
const inputLocal = 0

/** Which parts of the input a variable may hold, as JSON pointers. */
type PartsByLocal = ReadonlyMap<number, ReadonlySet<string>>

/** Beyond them a part counts as read with all that is in it: the analysis ends whatever a loop does. */
const mostSteps = 16
const mostParts = 10_000

/** Thrown where the analysis gives up: the whole input is read. */
const wholeInput = Symbol('whole input')

const pathsOf = (start: Routine, functions: ReadonlyMap<string, Routine>, strings: readonly string[]): InputPaths => {
  /** With all that is in them. */
  const whole = new Set<string>()
  /** That are gone to: whether there is such a member decides too. */
  const visited = new Set<string>()
  const reached = new Set<Routine>([start])

  /** A member of `parts`, where a rule names it. */
  const visit = (parts: Iterable<string>, key: string): ReadonlySet<string> => {
    const found = new Set<string>()
    for (const part of parts) {
      const pointer = `${part}/${escaped(key)}`
      if (stepsOf(part).length >= mostSteps) whole.add(part)
      else found.add(pointer)
    }
    for (const pointer of found) visited.add(pointer)
    if (visited.size > mostParts) throw wholeInput
    return found
  }

  /** Runs blocks in order; answers with what variables may hold afterwards, wherever a block was left. */
  const runBlocks = (blocks: Blocks, before: PartsByLocal): PartsByLocal => {
    let held = before
    for (const { stmts } of blocks) {
      let after = held
      for (const { type, stmt } of stmts ?? []) {
        held = runStatement(type, stmt, held)
        after = union(after, held)
      }
      held = after
    }
    return held
  }

  const runStatement = (type: string, { block, blocks, ...fields }: Fields, before: PartsByLocal): PartsByLocal => {
    if (!knownStatements.has(type)) throw wholeInput
    const called = type === 'CallStmt' ? functions.get(String(fields['func'])) : undefined
    if (called) reached.add(called)
    const step = constantStep(type, fields, strings)
    const { source, ...others } = fields
    for (const local of holdConstants.has(type) ? [] : localsUsed(step ? others : fields, called !== undefined)) {
      if (local === inputLocal) throw wholeInput
      for (const part of before.get(local) ?? []) whole.add(part)
    }

    let held = before
    const nested = blocksSchema.parse([...(block ? [block] : []), ...((blocks as unknown[] | null | undefined) ?? [])])
    if (nested.length > 0) {
      // Until nothing is new, since the body of a loop may see what its previous round left.
      for (let known = -1; sizeOf(held) > known; held = runBlocks(nested, held)) known = sizeOf(held)
    }

    const written = [fields['target'], fields['result']].filter((local) => typeof local === 'number')
    if (written.length === 0) return held
    const next = new Map(held)
    for (const local of written) next.delete(local)
    if (step) next.set(step.target, visit(step.from === inputLocal ? [''] : (before.get(step.from) ?? []), step.key))
    return next
  }

  try {
    for (const routine of reached) {
      if (routine.params[0] !== inputLocal) return null
      runBlocks(routine.blocks, new Map())
    }
  } catch (reason) {
    if (reason === wholeInput || reason instanceof z.ZodError) return null
    throw reason
  }
  return outermost(whole, visited)
}

/** Each part that is read, without what is in another one; of members that were only gone to, the last. */
const outermost = (whole: ReadonlySet<string>, visited: ReadonlySet<string>): string[] => {
  const within = (pointer: string) => ancestorsOf(pointer).some((one) => whole.has(one))
  const gonePast = new Set([...whole, ...visited].flatMap(ancestorsOf))
  const last = [...visited].filter((pointer) => !gonePast.has(pointer))
  return [...new Set([...whole, ...last])].filter((pointer) => !within(pointer)).sort()
}

const escaped = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1')
const stepsOf = (pointer: string): string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))

/** `/a/b/c` → `/a`, `/a/b`. */
const ancestorsOf = (pointer: string): string[] =>
  [...pointer.matchAll(/\//g)].slice(1).map(({ index }) => pointer.slice(0, index))

/** Two steps of them: what is left out of an input for the engine is left out there. */
const membersOf = (paths: InputPaths): InputReads => {
  const reads = new Map<string, Set<string> | null>()
  for (const [key = '', member] of (paths ?? []).map(stepsOf)) {
    if (member === undefined) reads.set(key, null)
    else if (!reads.has(key)) reads.set(key, new Set([member]))
    else reads.get(key)?.add(member)
  }
  if (paths === null || reads.has('__proto__')) return null
  return Object.fromEntries([...reads].sort().map(([key, members]) => [key, members && [...members].sort()]))
}

const union = (a: PartsByLocal, b: PartsByLocal): PartsByLocal => {
  if (a === b) return a
  const both = new Map(a)
  for (const [local, keys] of b) both.set(local, new Set([...(both.get(local) ?? []), ...keys]))
  return both
}

const sizeOf = (held: PartsByLocal): number => [...held.values()].reduce((sum, keys) => sum + keys.size, 0)

/** `target := from.key` with a key that is written in the rule. */
const constantStep = (
  type: string,
  fields: Fields,
  strings: readonly string[],
): { from: number; key: string; target: number } | undefined => {
  const from = operand(fields['source'], 'local')
  const key = operand(fields['key'], 'string_index')
  const name = key === undefined ? undefined : strings[key]
  if (type !== 'DotStmt' || from === undefined || name === undefined) return undefined
  return { from, key: name, target: Number(fields['target']) }
}

/**
 * Statements whose variables stand where `localsUsed` looks for them. `WithStmt` gives rules another input and
 * `CallDynamicStmt` calls rules by computed names, so they are not among them; nor is what a later OPA may add.
 */
const knownStatements = new Set(
  ['ArrayAppend', 'AssignInt', 'AssignVar', 'AssignVarOnce', 'Block', 'Break', 'Call', 'Dot', 'Equal', 'IsArray']
    .concat(['IsDefined', 'IsObject', 'IsSet', 'IsUndefined', 'Len', 'MakeArray', 'MakeNull', 'MakeNumberInt'])
    .concat(['MakeNumberRef', 'MakeObject', 'MakeSet', 'Nop', 'Not', 'NotEqual', 'ObjectInsert', 'ObjectInsertOnce'])
    .concat(['ObjectMerge', 'ResetLocal', 'ResultSetAdd', 'ReturnLocal', 'Scan', 'SetAdd'])
    .map((name) => `${name}Stmt`),
)

/** Numbers in a statement that are no variables, or ones that are only written. */
const notRead = new Set(['target', 'result', 'index', 'Index', 'capacity', 'file', 'row', 'col'])

/** Statements that write a number of the rule itself into a variable. */
const holdConstants = new Set(['AssignIntStmt', 'MakeNumberIntStmt'])

/** Variables that a statement reads in any other way than by a constant step or by handing the input on to a rule. */
const localsUsed = (fields: Fields, callsRule: boolean): number[] =>
  Object.entries(fields).flatMap(([name, value]) => {
    if (notRead.has(name)) return []
    if (name === 'args' && Array.isArray(value)) {
      return value.flatMap((argument, position) => (callsRule && position === 0 ? [] : localsIn(argument)))
    }
    return localsIn(value)
  })

const localsIn = (value: unknown): number[] => {
  if (typeof value === 'number') return [value]
  if (Array.isArray(value)) return value.flatMap(localsIn)
  const local = operand(value, 'local')
  return local === undefined ? [] : [local]
}

const operand = (value: unknown, type: 'local' | 'string_index'): number | undefined =>
  isObject(value) && value['type'] === type && typeof value['value'] === 'number' ? value['value'] : undefined
