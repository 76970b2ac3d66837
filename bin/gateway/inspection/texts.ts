import type { AnswerOf } from '../../../gateway/inspection/api.ts'
import type { Why } from '../../../gateway/inspection/decision-answers.ts'
import { explanationLines } from '../../../policies/authoring/explain.ts'
import { tableLines } from '../../cli/table.ts'
import { ago, coloured, heading, printable, shortened, span, summary } from './words.ts'

/** Answers of the inspection API as people read them: lines of text. */

const any = (names: readonly string[]): string => (names.length === 0 ? 'any' : names.join(','))

export const routesText = ({ routes }: Pick<AnswerOf<'routes'>, 'routes'>): string[] =>
  tableLines(
    ['ROUTE', 'HOST', 'METHODS', 'PATH', 'UPSTREAM', 'SCOPES', 'IMPERSONATION'],
    routes.map(({ id, hosts, methods, path, upstream = '-', auth, scopes, impersonation }) =>
      [id, any(hosts), any(methods), path, upstream]
        .concat(auth === 'none' ? ['(public)', '-'] : [scopes.join(' ') || '-', impersonation])
        .map(printable),
    ),
  )

export const matchText = (asked: { method: string; url: string }, answer: AnswerOf<'match'>): string[] => {
  const { route, params = {}, refused, nearMisses } = answer
  const request = printable(`${asked.method} ${asked.url}`)
  const first =
    refused !== undefined
      ? `${request}: refused. ${refused}${route === undefined ? '' : ` (route ${route})`}`
      : route === undefined
        ? `${request}: no route takes it`
        : `${request}: ${route}`
  const parameters = Object.entries(params).map(([name, value]) => `  {${name}} = ${printable(JSON.stringify(value))}`)
  return [first, ...parameters, ...missLines(nearMisses)]
}

const missLines = (misses: Why['nearMisses']): string[] =>
  misses.length === 0
    ? []
    : ['', heading('Near misses'), ...misses.map(({ route, because }) => printable(`  ${route} ${because}`))]

export const decisionsText = ({ decisions, more }: AnswerOf<'decisions'>, now: Date): string[] => {
  if (decisions.length === 0) return ['No such decision is kept.']
  const [head, ...lines] = tableLines(
    ['WHEN', 'STATUS', 'METHOD', 'TARGET', 'ROUTE', 'WHO', 'REASON', 'REQUEST'],
    decisions.map((record) => {
      const { method, target, who, reason } = summary(record)
      const cells = [ago(new Date(record.timestamp), now), String(record.status), method, shortened(target, 48)]
      return [...cells, record.route ?? '-', shortened(who, 40), reason, record.decision_id].map(printable)
    }),
  )
  return [
    heading(head!),
    ...lines.map((line, index) =>
      decisions[index]!.verdict === 'allowed' ? line : coloured(decisions[index]!.verdict, line),
    ),
    ...(more ? ['', 'There are more: --limit, or filters.'] : []),
  ]
}

export const whyText = (why: Why, now: Date): string[] => {
  const { request, timestamp, verdict, status, method = '?', host = '', path = '', route, refusal } = why
  const ended = `${status}${refusal ? ` ${refusal.code}` : ''}`
  const outcome = refusal ? refusal.because : 'It was allowed.'
  const section = (name: string, lines: readonly string[]) => (lines.length === 0 ? [] : ['', heading(name), ...lines])
  return [
    `${printable(`${method} ${host}${path}`)}: ${coloured(verdict, printable(ended))}, ${ago(new Date(timestamp), now)}`,
    printable(
      `request ${request}${route === undefined ? '' : `, route ${route}`}${refusal ? `, refused by: ${refusal.stage}` : ''}`,
    ),
    '',
    printable(outcome),
    ...section(
      'It would have been allowed',
      why.wouldAllow.map(remedyText).map((text) => `  ${printable(text)}`),
    ),
    ...section('Token', tokenLines(why.token, now)),
    ...section(
      'Rules (+ held, - did not)',
      explanationLines(why.rules ?? []).map((line) => `  ${printable(line)}`),
    ),
    ...(verdict === 'allowed' ? [] : missLines(why.nearMisses)),
    ...section(
      'Notes',
      why.notes.map((note) => `  ${printable(note)}`),
    ),
  ]
}

const remedyText = (remedy: Why['wouldAllow'][number]): string => {
  if (remedy.change === 'scope')
    return `with the ${remedy.scopes.length > 1 ? 'scopes' : 'scope'} ${remedy.scopes.join(' ')}`
  if (remedy.change === 'no-actor') return 'with a token of the subject itself, nobody acting for it'
  return `as ${remedy.method} ${remedy.host}${remedy.path}, by the route ${remedy.route}`
}

const tokenLines = (token: Why['token'], now: Date): string[] => {
  if (!token) return []
  const { expires } = token
  const rows: Record<string, string | undefined> = {
    subject: token.subject,
    actor: token.actors?.join(', for '),
    client: token.client,
    organization: token.organization,
    issuer: token.issuer,
    audience: token.audience?.join(' '),
    scopes: token.scopes && (token.scopes.join(' ') || 'none'),
    session: token.sid,
    acr: token.acr,
    expires: expires === undefined ? undefined : expiry(new Date(expires * 1000), now),
    bound: token.bound && `to a ${token.bound}`,
  }
  return Object.entries(rows).flatMap(([name, value]) =>
    value === undefined ? [] : [printable(`  ${name.padEnd(12)}  ${shortened(value, 200)}`)],
  )
}

const expiry = (at: Date, now: Date): string => {
  const left = at.getTime() - now.getTime()
  return `${at.toISOString()} (${left > 0 ? `in ${span(left)}` : ago(at, now)})`
}
