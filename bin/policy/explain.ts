import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { z } from 'zod'
import { silentLogger } from '../../platform/logger.ts'
import { explain, explanationLines } from '../../policies/authoring/explain.ts'
import { defaultEntrypoint, loadPolicies, PolicyError } from '../../policies/decide.ts'
import { readSources } from '../../policies/engine/index.ts'
import { questionOfCase } from './cases.ts'
import { type Invocation, UsageError } from './invocation.ts'

/** `surrogate policy explain`: which rules made a decision, of a line of the decision log, an input, or a case. */
export const explainDecision = async (invocation: Invocation): Promise<number> => {
  const { path, values, flags, say } = invocation
  const [question, sources, opa] = await Promise.all([questionOf(invocation), readSources(path), invocation.opa()])
  const entrypoint = values['entrypoint'] ?? question.entrypoint ?? defaultEntrypoint
  const [{ result, rules }, units] = await Promise.all([
    explain({ sources, opa, entrypoint, input: question.input }),
    unitsOf({ path, opa, entrypoint, question }),
  ])
  if (flags['json']) {
    say(JSON.stringify({ entrypoint, result, units: units?.taken, rules }, null, 2))
    return 0
  }
  say(`${entrypoint}: ${result === undefined ? 'undefined, which denies' : JSON.stringify(result)}`)
  for (const remark of remarks(question, result)) say(remark)
  if (units) say(units.usedUp ?? `${units.taken} units of work`)
  say('')
  for (const line of explanationLines(rules)) say(line)
  return 0
}

interface Question {
  input: unknown
  entrypoint?: string | undefined
  /** What the evaluation may spend; that of the configuration, in a case. */
  units?: number | undefined
  /** What the log says was decided then. */
  logged?: { allow: boolean; reason?: string | undefined } | undefined
  erased?: string[] | undefined
}

/** What the compiled rules take for it; undefined where they have no such entrypoint. */
const unitsOf = async (options: {
  path: string
  opa: string
  entrypoint: string
  question: Question
}): Promise<{ taken: number; usedUp?: string } | undefined> => {
  const { path, opa, entrypoint, question } = options
  const set = await loadPolicies({ path, logger: silentLogger, opaBin: opa, units: question.units })
  const taken = () => set.unitsTaken?.() ?? 0
  try {
    set.evaluate(entrypoint, question.input)
    return { taken: taken() }
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    if (error.code === 'invalid') return undefined
    return { taken: taken(), ...(error.code === 'units_used_up' && { usedUp: error.message }) }
  }
}

const questionOf = async (invocation: Invocation): Promise<Question> => {
  const { values, positionals } = invocation
  const [file, ...others] = positionals
  if (values['case'] !== undefined && file === undefined) return questionOfCase(invocation, values['case'])
  if (file === undefined || others.length > 0 || values['case'] !== undefined)
    throw new UsageError('name one file (- for standard input), or a case with --case')
  const content = file === '-' ? await text(process.stdin) : await readFile(file, 'utf8').catch(unreadable(file))
  return questionIn(content, values['id'])
}

const unreadable = (file: string) => (cause: unknown) => {
  throw new PolicyError(`${file} cannot be read`, { cause })
}

const eventSchema = z.looseObject({
  decision_id: z.string(),
  path: z.string().optional(),
  input: z.unknown().optional(),
  result: z.looseObject({ allow: z.boolean(), reason: z.string().optional() }).optional(),
  erased: z.array(z.string()).optional(),
})

/**
 * A whole document is an input or one event; of lines of a decision log, the one with the id, else the last denial,
 * else the last.
 */
const questionIn = (content: string, id: string | undefined): Question => {
  const whole = readJson(content)
  const documents = whole === undefined ? content.split('\n').map(readJson) : [whole]
  const events = documents.flatMap((document) => {
    const event = eventSchema.safeParse(document)
    return event.success ? [event.data] : []
  })
  const found =
    id === undefined
      ? (events.findLast(({ result }) => result?.allow === false) ?? events.at(-1))
      : events.find((event) => event.decision_id === id)
  if (found) return { input: found.input, entrypoint: found.path, logged: found.result, erased: found.erased }
  if (id !== undefined) throw new PolicyError(`there is no decision with the id ${id}`)
  if (whole === undefined) throw new PolicyError('this is neither JSON nor a decision log')
  return { input: whole }
}

const readJson = (line: string): unknown => {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

const remarks = ({ logged, erased = [] }: Question, result: unknown): string[] => {
  const found: string[] = []
  if (erased.length > 0) {
    found.push(`erased from the log, so rules that read it may decide otherwise here: ${erased.join(', ')}`)
  }
  const allows = result === true || (result as { allow?: unknown } | undefined)?.allow === true
  if (logged && logged.allow !== allows) {
    const then = logged.allow ? 'allowed' : `denied (${logged.reason})`
    found.push(`the log says ${then}: the rules, their data or the time were others then`)
  }
  return found
}
