import { foreignName, foreignValue, tidy } from '../foreign-text.ts'
import { type Html, html } from '../html.ts'
import type { Page } from '../page.ts'
import { durationIn, type Say, sayIn } from '../say.ts'
import { type AccountError, problemsOf } from './problems.ts'
import { type AccountShell, accountPage, buttonForm, confirmFirst, type PlainMessage } from './shell.ts'
import { timeAgo, timeOf } from './times.ts'

/** Who, and why. Texts are those of whoever asked. */
interface Acting {
  id: string
  actorName: string | null
  reason: string | null
  ticket: string | null
  resource: string | null
}

export interface RequestOnPage extends Acting {
  number: string
  creatorName: string | null
  /** Null: all that the person may do. */
  scopes: readonly string[] | null
  expiresAt: Date
}

export interface ActedOnPage extends Acting {
  clientName: string | null
  scopes: readonly string[]
  access: 'read' | null
  startedAt: Date
  endedAt: Date | null
  expiresAt: Date
  isActive: boolean
}

export interface ImpersonationsPage {
  /** Those that wait. */
  requests: readonly RequestOnPage[]
  /** Those that the person allowed, and by which nobody acts yet. */
  allowed: readonly RequestOnPage[]
  /** Newest first. */
  acted: readonly ActedOnPage[]
  error?: AccountError | undefined
}

/** For how long somebody may act at most, in minutes. */
export const actingLimits = [15, 60] as const
export type ActingLimit = (typeof actingLimits)[number] | 'none'

/** Who asks to act as the person, who does, and who did. Refusing and ending is always possible at once. */
export const impersonationsPage = (
  shell: AccountShell,
  { requests, allowed, acted, error }: ImpersonationsPage,
): Page => {
  const say = sayIn(shell.locale)
  const [active, ended] = [acted.filter(({ isActive }) => isActive), acted.filter(({ isActive }) => !isActive)]
  const list = (title: PlainMessage, entries: readonly Html[]) =>
    entries.length > 0 && html`<section><h2>${say(title)}</h2>\n<ul class="entries">\n${entries}</ul></section>\n`
  return accountPage(shell, {
    lead: say('accountActingText'),
    problems: problemsOf(say, error),
    content: html`${list(
      'accountActingRequests',
      requests.map((request) => requestEntry(say, shell, request)),
    )}${list(
      'accountActingAllowedSoFar',
      allowed.map((request) => allowedEntry(say, shell, request)),
    )}${list(
      'accountActingNow',
      active.map((one) => actedEntry(say, shell, one)),
    )}${list(
      'accountActingBefore',
      ended.map((one) => actedEntry(say, shell, one)),
    )}${requests.length + allowed.length + acted.length === 0 && html`<p class="small">${say('accountActingNobody')}</p>`}`,
  })
}

const whoIs = (say: Say, ...names: (string | null)[]): Html => {
  const name = names.find((one) => one)
  return name ? foreignName(name) : say('accountActingSomebody')
}

const quoted = (text: string): Html => html`<q><bdi>${tidy(text, 500)}</bdi></q>`

const why = (say: Say, { reason, ticket }: Acting): Html => html`<p>${
  reason ? say('accountActingReason', { reason: quoted(reason) }) : say('accountActingNoReason')
}</p>
${ticket !== null && html`<p>${say('accountActingTicket', { ticket: foreignValue(ticket, 100) })}</p>\n`}`

const what = (say: Say, scopes: readonly string[] | null, resource: string | null): Html => {
  const shown = scopes?.filter((name) => name !== 'openid').map((name) => foreignValue(name, 100))
  const names = html`${shown?.map((name, index) => [index > 0 && ', ', name])}`
  return html`${
    shown === undefined
      ? html`<p>${say('accountActingEverything')}</p>\n`
      : shown.length > 0 && html`<p>${say('accountActingMay', { names })}</p>\n`
  }${resource !== null && html`<p>${say('accountActingWhere', { resource: foreignValue(resource, 200) })}</p>\n`}`
}

const requestEntry = (say: Say, shell: AccountShell, request: RequestOnPage): Html => {
  const name = whoIs(say, request.actorName, request.creatorName)
  const refuse = buttonForm(shell, {
    choice: 'refuse',
    fields: { id: request.id },
    text: say('accountActingRefuse'),
    label: say('accountActingRefuseNamed', { number: request.number }),
    look: 'danger',
  })
  return html`<li class="entry asks"><h3>${say('accountActingAsks', { name })}</h3>
<p>${say('accountActingCompare')}</p>
<p class="number">${request.number}</p>
${why(say, request)}${what(say, request.scopes, request.resource)}<p>${say('accountActingUntil', { time: timeOf(shell, request.expiresAt) })}</p>
${shell.confirmPath === undefined ? approval(say, shell, request) : confirmFirst(shell)}${refuse}</li>
`
}

const allowedEntry = (
  say: Say,
  shell: AccountShell,
  request: RequestOnPage,
): Html => html`<li class="entry"><h3>${whoIs(say, request.actorName, request.creatorName)}</h3>
${why(say, request)}${what(say, request.scopes, request.resource)}${buttonForm(shell, {
  choice: 'withdraw',
  fields: { id: request.id },
  text: say('accountActingWithdraw'),
  label: say('accountActingWithdrawNamed', { number: request.number }),
  look: 'danger',
})}</li>
`

const approval = (say: Say, { locale, path, csrf }: AccountShell, { id, number }: RequestOnPage): Html => html`
<form method="post" action="${path}">
<input type="hidden" name="csrf" value="${csrf}">
<input type="hidden" name="id" value="${id}">
<input type="hidden" name="number" value="${number}">
<label class="choice"><input type="checkbox" name="readOnly" value="yes"><span>${say('accountActingReadOnly')}</span></label>
<div class="field"><label for="limit-${id}">${say('accountActingLimit')}</label>
<select id="limit-${id}" name="limit">
${actingLimits.map((minutes) => html`<option value="${String(minutes)}">${durationIn(locale, minutes)}</option>\n`)}<option value="none">${say('accountActingUnlimited')}</option>
</select></div>
<p class="actions"><button name="choice" value="approve" aria-label="${say('accountActingAllowNamed', { number })}">${say('accountActingAllow')}</button></p>
</form>`

const actedEntry = (say: Say, shell: AccountShell, one: ActedOnPage): Html => {
  const name = whoIs(say, one.actorName, one.clientName)
  const times = one.isActive
    ? say('accountActingSince', { time: timeAgo(shell, one.startedAt), until: timeOf(shell, one.expiresAt) })
    : say('accountActingFromTo', {
        from: timeOf(shell, one.startedAt),
        to: timeOf(shell, one.endedAt ?? one.expiresAt),
      })
  return html`<li class="entry"><h3>${name}</h3>
<p>${times}</p>
${one.actorName !== null && one.clientName !== null && html`<p>${say('accountActingThrough', { name: foreignName(one.clientName) })}</p>\n`}${why(say, one)}${what(say, one.scopes, one.resource)}${
  one.access === 'read' && html`<p>${say('accountActingOnlyRead')}</p>\n`
}${
  one.isActive &&
  buttonForm(shell, {
    choice: 'end',
    fields: { id: one.id },
    text: say('accountActingEnd'),
    label: say('accountActingEndNamed', { name: one.actorName ?? one.clientName ?? '' }),
    look: 'danger',
  })
}</li>
`
}
