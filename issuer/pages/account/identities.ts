import { foreignName } from '../foreign-text.ts'
import { html } from '../html.ts'
import type { Page } from '../page.ts'
import { sayIn } from '../say.ts'
import { type AccountError, problemsOf } from './problems.ts'
import { type AccountShell, accountPage, buttonForm, confirmFirst } from './shell.ts'

export interface IdentitiesPage {
  linked: readonly { target: string; name: string; who: string }[]
  offered: readonly { id: string; name: string }[]
  /** A provider has confirmed one, which waits to be linked. */
  verified: string | undefined
  isEditable: boolean
  error?: AccountError | undefined
}

/** Accounts elsewhere that open this one. */
export const identitiesPage = (shell: AccountShell, page: IdentitiesPage): Page => {
  const { linked, offered, verified, isEditable, error } = page
  const say = sayIn(shell.locale)
  const mayEdit = isEditable && shell.confirmPath === undefined
  return accountPage(shell, {
    lead: say('accountIdentitiesText'),
    problems: problemsOf(say, error),
    // The answer to a form leads to the provider.
    form: 'leaving',
    content: html`${isEditable ? confirmFirst(shell) : html`<p class="small">${say('accountReadOnly')}</p>`}
${
  mayEdit &&
  verified !== undefined &&
  error === undefined &&
  html`<div class="first"><p>${say('accountIdentityConfirmed')}</p>${buttonForm(shell, {
    choice: 'link',
    fields: { verificationId: verified },
    text: say('accountIdentityLinkNow'),
    look: 'main',
  })}</div>`
}
${linked.length === 0 && html`<p class="small">${say('accountIdentitiesNone')}</p>`}
<ul class="entries">
${linked.map(
  ({ target, name, who }) => html`<li class="entry"><h2>${foreignName(name)}</h2>
<p>${foreignName(who, 256)}</p>
${
  mayEdit &&
  buttonForm(shell, {
    choice: 'remove',
    fields: { target },
    text: say('accountRemove'),
    label: say('accountRemoveNamed', { name }),
    look: 'danger',
  })
}</li>
`,
)}</ul>
${
  mayEdit &&
  offered.map(({ id, name }) =>
    buttonForm(shell, {
      choice: 'begin',
      fields: { connector: id },
      text: say('accountIdentityLink', { name: foreignName(name) }),
    }),
  )
}`,
  })
}
