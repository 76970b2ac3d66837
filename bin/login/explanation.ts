import type { ExplainFacts } from '../../issuer/interaction/explain-facts-store.ts'
import type { SignInQuestion } from '../../issuer/interaction/sign-in-policy.ts'
import type { Step } from '../../issuer/interaction/step.ts'
import { type ExplainedRule, explanationLines } from '../../policies/authoring/explain.ts'
import type { Sources } from '../../policies/engine/index.ts'
import type { SignInDecision, SignInStage } from '../../policies/sign-in.ts'

/** How `surrogate login explain` tells what the rules decide. */

/** What the rules decide at a stage. */
export interface Answer {
  stage: SignInStage
  question: SignInQuestion
  decision: SignInDecision
  trace: ExplainedRule[] | undefined
  /** What the issuer would show. */
  next: Step
}

/** For programs: with the whole input and trace. */
export const answerAsJson = ({ trace, question, ...answer }: Answer) => ({
  ...answer,
  input: { version: 1, ...question },
  ...(trace && { because: reasonsIn(trace), trace }),
})

/** The sets of the package that files add to. */
const contributions = new Set(['deny', 'require', 'idle_ttl', 'absolute_ttl'])

/** The rules that made the decision: those that added something, each once. */
const reasonsIn = (rules: readonly ExplainedRule[]): { rule: string; file: string; line: number }[] => {
  const found = new Map<string, { rule: string; file: string; line: number }>()
  const visit = ({ name, file, line, held, rules: asked }: ExplainedRule): void => {
    const [rule = ''] = name.split(/[.[]/)
    if (held && contributions.has(rule)) found.set(`${file}:${line}`, { rule, file, line })
    for (const one of asked) visit(one)
  }
  for (const rule of rules) visit(rule)
  return [...found.values()]
}

/** `mfa (required): totp` */
const stepLine = ({ step, reasons, options: { proofs, factors, missing, isSkippable } }: Step): string => {
  const offered = [...(proofs ?? factors ?? []), ...(missing ?? [])].join(', ')
  const why = reasons.length > 0 ? ` (${reasons.join(', ')})` : ''
  return `${step}${why}${offered === '' ? '' : `: ${offered}`}${isSkippable ? ', which can be put off' : ''}`
}

/** For people. `all`: with every rule that was asked. */
export const answerLines = ({
  person,
  client,
  asked: { name, sources, missing },
  answers,
  all,
}: Pick<ExplainFacts, 'client' | 'person'> & {
  asked: { name: string; sources: Sources | undefined; missing: string }
  answers: readonly Answer[]
  all: boolean
}): string[] => {
  const list = (names: readonly string[]) => (names.length > 0 ? names.join(', ') : 'none')
  const result = [
    `person    ${person.id}${person.username === null ? '' : ` (${person.username})`}, roles: ${list(person.roles)}`,
    `client    ${client.id} (${client.name}), ${client.type}${client.isThirdParty ? ', third-party' : ''}`,
    `rules     ${name}`,
    // Nobody asks the rules about them.
    ...(person.isSuspended ? ['          the person is suspended, and is refused whatever the rules say'] : []),
  ]
  for (const { stage, decision, next, trace } of answers) {
    const { allow, reason, require, session } = decision
    result.push('', `stage     ${stage}`)
    result.push(`decision  ${allow ? 'allowed' : `denied: ${reason ?? 'no reason given'}`}`)
    if (allow) {
      result.push(`requires  ${list(require)}`)
      for (const [which, seconds] of Object.entries(session)) result.push(`session   ${which} at most ${seconds} s`)
    }
    result.push(`next      ${stepLine(next)}`)
    if (!trace) result.push(`because   ${missing}`)
    for (const { rule, file, line } of trace ? reasonsIn(trace) : []) {
      result.push(`because   ${rule}  ${file}:${line}  ${lineOf(sources, file, line)}`)
    }
    if (trace && all) result.push('', ...explanationLines(trace))
  }
  return result
}

const lineOf = (sources: Sources | undefined, file: string, line: number): string => {
  const source = sources?.get(file.replace(/^\.?\//, ''))
  return source ? (Buffer.from(source).toString().split('\n')[line - 1]?.trim() ?? '') : ''
}
