import type { ComplianceCase } from './cases.ts'
import type { Outcome } from './run-case.ts'

/** Of all cases that OPA compiles to WebAssembly, in percent; what we refuse counts as failing. */
export const bar = 97

export interface Judged {
  one: Pick<ComplianceCase, 'name' | 'group'>
  outcome: Outcome
}

export interface Verdict {
  /** Percent. */
  share: number
  /** The table of the documentation: groups in which a case does not pass, and the others together. Markdown. */
  table: string[]
  /** Why the run fails; empty when it does not. */
  problems: string[]
}

/**
 * @param known the cases that do not pass, with their reasons. Names that are not among the results say nothing: other
 * folders have other
 *   cases.
 * @param whole whether these are all cases, to which the bar applies.
 */
export const judge = (
  results: readonly Judged[],
  known: Readonly<Record<string, string>>,
  { whole }: { whole: boolean },
): Verdict => {
  const counted = results.filter(({ outcome }) => outcome.kind !== 'beyond')
  const share = (100 * passedOf(counted)) / counted.length
  const problems = results.flatMap((result) => surprise(result, known))
  if (whole && !(share >= bar)) problems.push(`${share.toFixed(2)} % pass; it must be ${bar} %`)
  return { share, table: tableOf(results, known, share), problems }
}

const passedOf = (results: readonly Judged[]): number =>
  results.filter(({ outcome }) => outcome.kind === 'passed').length

const surprise = ({ one, outcome }: Judged, known: Readonly<Record<string, string>>): string[] => {
  const isKnown = Object.hasOwn(known, one.name)
  if (outcome.kind === 'passed') return isKnown ? [`${one.name}: passes, but is listed as one that does not`] : []
  return isKnown ? [] : [`${one.name}: ${outcome.kind}: ${outcome.why}`]
}

const tableOf = (results: readonly Judged[], known: Readonly<Record<string, string>>, share: number): string[] => {
  const groups = [...Map.groupBy(results, ({ one }) => one.group)]
  const clean = groups.filter(([, members]) => passedOf(members) === members.length).map(([, members]) => members)
  const rows = groups
    .filter(([, members]) => passedOf(members) < members.length)
    .map(([group, members]) => row(`\`${group}\``, members, reasonsOf(members, known).join('; ')))
  const counted = results.filter(({ outcome }) => outcome.kind !== 'beyond')
  return [
    '| group | cases | passed | the others |',
    '|---|---:|---:|---|',
    ...rows,
    row(`the other ${clean.length}`, clean.flat(), ''),
    row('all that OPA compiles to WebAssembly', counted, `**${share.toFixed(2)} %** pass`),
  ]
}

const row = (name: string, members: readonly Judged[], note: string): string =>
  `| ${name} | ${members.length} | ${passedOf(members)} | ${note} |`

const reasonsOf = (members: readonly Judged[], known: Readonly<Record<string, string>>): string[] => {
  const others = members.filter(({ outcome }) => outcome.kind !== 'passed')
  const byReason = Map.groupBy(others, ({ one }) => known[one.name] ?? 'not known')
  return [...byReason].map(([reason, cases]) => (byReason.size === 1 ? reason : `${cases.length} ${reason}`))
}
