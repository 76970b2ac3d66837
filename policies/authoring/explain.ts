import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import {
  capabilitiesFile,
  checkIssues,
  type Opa,
  PolicyError,
  runOpa,
  type Sources,
  withSources,
} from '../engine/index.ts'

/**
 * Why rules decide as they do: OPA's interpreter evaluates the entrypoint again and traces it, and what it traced
 * becomes a tree of the rules that were asked, each with whether it held and, if not, the line that stood in the way.
 */
export interface Explanation {
  /** The value of the entrypoint; undefined when no rule gives one. */
  result: unknown
  /** In the order of evaluation. */
  rules: ExplainedRule[]
}

export interface ExplainedRule {
  name: string
  file: string
  line: number
  held: boolean
  /** The line that was not true or had no value, when the rule did not hold. */
  stopped?: { line: number; text: string }
  /** Named variables of the rule where it ended. */
  variables: Record<string, unknown>
  /** How often it was asked with the same outcome, in a loop say. */
  times: number
  rules: ExplainedRule[]
}

/** Throws `PolicyError` when the rules do not compile. */
export const explain = (options: {
  sources: Sources
  opa: Opa
  entrypoint: string
  input: unknown
}): Promise<Explanation> =>
  withSources(options.sources, async (folder, scratch) => {
    const inputFile = join(scratch, 'input.json')
    await writeFile(inputFile, JSON.stringify(options.input ?? null))
    const path = options.entrypoint.split('/').map((part) => `[${JSON.stringify(part)}]`)
    const evaluation = await runOpa(
      options.opa,
      ['eval', '--format', 'json', '--explain', 'full', '--capabilities', capabilitiesFile]
        // With an index, rules that cannot match are not even mentioned; they are often the ones that are looked for.
        .concat(['--disable-indexing', '-i', inputFile, '-b', '.', `data${path.join('')}`]),
      { cwd: folder },
    )
    const parsed = answerSchema.safeParse(readJson(evaluation.stdout))
    if (!parsed.success || evaluation.code !== 0) {
      const issues = checkIssues(evaluation)
      const prose = (evaluation.stderr || evaluation.stdout).trim()
      throw new PolicyError(`the rules cannot be evaluated: ${prose}`, { issues })
    }
    const { result, explanation } = parsed.data
    return { result: result[0]?.expressions[0]?.value, rules: rulesOf(explanation, options.sources) }
  })

const termSchema = z.object({ type: z.string(), value: z.unknown().optional() })
const eventSchema = z.object({
  Op: z.string(),
  Node: z.union([
    z.array(z.unknown()),
    z.looseObject({ head: z.looseObject({ ref: z.array(termSchema) }).optional() }),
  ]),
  Location: z.object({ file: z.string(), row: z.number() }),
  QueryID: z.number(),
  ParentID: z.number(),
  Locals: z
    .array(z.object({ name: z.string(), ...termSchema.shape }))
    .nullable()
    .transform((list) => list ?? []),
  LocalMetadata: z
    .record(z.string(), z.object({ name: z.string() }))
    .nullable()
    .transform((names) => names ?? {}),
})
type Event = z.infer<typeof eventSchema>

const answerSchema = z.object({
  result: z.array(z.object({ expressions: z.array(z.object({ value: z.unknown().optional() })) })).default([]),
  explanation: z.array(eventSchema),
})

const readJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * A query is a rule's body or something within one (a comprehension, a negation); it ends with Exit, or with its last
 * Fail.
 */
const rulesOf = (events: readonly Event[], sources: Sources): ExplainedRule[] => {
  const top: ExplainedRule[] = []
  const rules = new Map<number, ExplainedRule>()
  /** The list that rules asked within a query belong to. */
  const lists = new Map<number, ExplainedRule[]>()
  for (const event of events) {
    const { Op, Node, Location, QueryID, ParentID } = event
    const head = Array.isArray(Node) ? undefined : Node.head
    if (Op === 'Enter') {
      const parent = lists.get(ParentID) ?? top
      lists.set(QueryID, parent)
      if (!head) continue
      const rule: ExplainedRule = {
        name: nameOf(head.ref),
        file: Location.file,
        line: Location.row,
        held: false,
        variables: {},
        times: 1,
        rules: [],
      }
      parent.push(rule)
      rules.set(QueryID, rule)
      lists.set(QueryID, rule.rules)
    }
    const rule = rules.get(QueryID)
    if (!rule) continue
    if (Op === 'Exit') Object.assign(rule, { held: true, stopped: undefined, variables: variablesOf(event) })
    if (Op === 'Fail' && !rule.held) {
      rule.stopped = { line: Location.row, text: lineOf(sources, Location) }
      rule.variables = variablesOf(event)
    }
  }
  return merged(top)
}

/** `deny`, `limits.daily`; a variable in the head stands as `[_]`. */
const nameOf = (ref: z.infer<typeof termSchema>[]): string =>
  ref.map(({ type, value }, index) => (index === 0 ? String(value) : type === 'string' ? `.${value}` : '[_]')).join('')

const variablesOf = ({ Locals, LocalMetadata }: Event): Record<string, unknown> =>
  Object.fromEntries(
    Locals.flatMap(({ name, ...term }) => {
      const written = LocalMetadata[name]?.name
      // The compiler's own have names that nobody can write.
      return written === undefined || /^(?:__|\$)/.test(written) ? [] : [[written, plainValue(term)] as const]
    }),
  )

const plainValue = ({ type, value }: z.infer<typeof termSchema>): unknown => {
  const terms = (list: unknown) => z.array(termSchema).parse(list).map(plainValue)
  if (type === 'array' || type === 'set') return terms(value)
  if (type === 'null') return null
  if (type !== 'object') return value
  const members = z.array(z.tuple([termSchema, termSchema])).parse(value)
  return Object.fromEntries(members.map(([key, member]) => [String(plainValue(key)), plainValue(member)]))
}

const lineOf = (sources: Sources, { file, row }: Event['Location']): string => {
  const source = sources.get(file.replace(/^\.?\//, ''))
  return source ? (Buffer.from(source).toString().split('\n')[row - 1]?.trim() ?? '') : ''
}

/** Neighbours that say the same become one. */
const merged = (rules: readonly ExplainedRule[]): ExplainedRule[] => {
  const result: ExplainedRule[] = []
  for (const rule of rules) {
    const next = { ...rule, rules: merged(rule.rules) }
    const last = result.at(-1)
    if (last && sameExceptTimes(last, next)) last.times++
    else result.push(next)
  }
  return result
}

const sameExceptTimes = ({ times: _, ...one }: ExplainedRule, { times: __, ...other }: ExplainedRule): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

/** The tree as lines of text: `+` held, `-` did not. */
export const explanationLines = (rules: readonly ExplainedRule[]): string[] => {
  const lines: string[] = []
  const write = ({ name, file, line, held, stopped, variables, times, rules: asked }: ExplainedRule, depth: number) => {
    const where = `${file}:${line}`
    const why = stopped ? `  stopped at line ${stopped.line}: ${stopped.text}` : ''
    const known = Object.entries(variables).map(
      ([variable, value]) => `${variable} = ${shorten(JSON.stringify(value))}`,
    )
    const more = [...(known.length > 0 ? [known.join(', ')] : []), ...(times > 1 ? [`${times} times`] : [])]
    const comment = more.length > 0 ? `  (${more.join('; ')})` : ''
    lines.push(`${'  '.repeat(depth)}${held ? '+' : '-'} ${name}  ${where}${why}${comment}`)
    for (const rule of asked) write(rule, depth + 1)
  }
  for (const rule of rules) write(rule, 0)
  return lines
}

const shorten = (text: string): string => (text.length > 80 ? `${text.slice(0, 77)}…` : text)
