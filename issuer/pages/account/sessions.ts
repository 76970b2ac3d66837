import { foreignName } from '../foreign-text.ts'
import { type Html, html } from '../html.ts'
import type { Page } from '../page.ts'
import { type Say, sayIn } from '../say.ts'
import { namesIn } from './names.ts'
import { type AccountShell, accountPage, buttonForm, confirmFirst } from './shell.ts'
import { timeAgo } from './times.ts'

export interface SessionOnPage {
  id: string
  /** `Firefox, Windows`; empty when its browser tells nothing. */
  device: string
  isCurrent: boolean
  address: string
  lastSeenAt: Date
  authenticatedAt: Date
  /** Names. */
  applications: readonly string[]
}

/** Where the person is signed in, this browser first. */
export const sessionsPage = (shell: AccountShell, { sessions }: { sessions: readonly SessionOnPage[] }): Page => {
  const say = sayIn(shell.locale)
  const hasOthers = sessions.some(({ isCurrent }) => !isCurrent)
  return accountPage(shell, {
    lead: say('accountSessionsText'),
    content: html`${hasOthers ? confirmFirst(shell) : html`<p class="small">${say('accountSessionsOnlyThis')}</p>`}
<ul class="entries">
${sessions.map((session) => entry(say, shell, session))}</ul>
${
  hasOthers &&
  shell.confirmPath === undefined &&
  buttonForm(shell, { choice: 'end_others', text: say('accountSessionsEndOthers'), look: 'danger' })
}`,
  })
}

const entry = (say: Say, shell: AccountShell, session: SessionOnPage): Html => {
  const device = session.device === '' ? say('accountSessionUnknown') : foreignName(session.device)
  return html`<li class="entry"><h2>${device}${session.isCurrent && html`<span class="badge">${say('accountSessionHere')}</span>`}</h2>
<p>${say('accountSessionSeen', { time: timeAgo(shell, session.lastSeenAt), address: html`<bdi>${session.address}</bdi>` })}</p>
<p>${say('accountSessionSince', { time: timeAgo(shell, session.authenticatedAt) })}</p>
${session.applications.length > 0 && html`<p>${say('accountSessionApplications', { names: namesIn(shell.locale, session.applications) })}</p>`}
${
  !session.isCurrent &&
  shell.confirmPath === undefined &&
  buttonForm(shell, {
    choice: 'end',
    fields: { id: session.id },
    text: say('accountSessionEnd'),
    label: say('accountSessionEndNamed', { name: session.device === '' ? session.address : session.device }),
  })
}</li>
`
}
