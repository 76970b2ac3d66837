import type { Problem } from '../form.ts'
import { html } from '../html.ts'
import type { Locale } from '../locale.ts'
import { type Page, page } from '../page.ts'
import { sayIn } from '../say.ts'
import { sign } from '../sign.ts'
import { type AccountError, problemsOf } from './problems.ts'
import { type AccountShell, accountPage, buttonForm, confirmFirst } from './shell.ts'

export interface DataPage {
  mayDownload: boolean
  mayDelete: boolean
  /** The box was not ticked. */
  isUnsure?: boolean | undefined
  error?: AccountError | undefined
}

/** What is stored, to take along; and the end of the account. */
export const dataPage = (shell: AccountShell, { mayDownload, mayDelete, isUnsure = false, error }: DataPage): Page => {
  const say = sayIn(shell.locale)
  const problems: Problem[] = isUnsure
    ? [{ message: say('accountDeleteSureMissing'), field: 'sure' }]
    : problemsOf(say, error)
  const mayAct = shell.confirmPath === undefined
  return accountPage(shell, {
    problems,
    content: html`${confirmFirst(shell)}
${
  mayDownload &&
  html`<section><h2>${say('accountDataDownload')}</h2>
<p class="small">${say('accountDataDownloadText')}</p>
${mayAct && buttonForm(shell, { choice: 'download', text: say('accountDataDownload'), look: 'main' })}</section>`
}
${
  mayDelete &&
  html`<section><h2>${say('accountDelete')}</h2>
<p class="small">${say('accountDeleteText')}</p>
${
  mayAct &&
  html`<form method="post" action="${shell.path}">
<input type="hidden" name="csrf" value="${shell.csrf}">
<label class="choice"><input type="checkbox" id="sure" name="sure" value="yes"${
    isUnsure && html` aria-invalid="true"`
  }><span>${say('accountDeleteSure')}</span></label>
<p class="actions"><button class="danger" name="choice" value="delete">${say('accountDelete')}</button></p>
</form>`
}</section>`
}`,
  })
}

export const deletedPage = ({ locale }: { locale: Locale }): Page => {
  const say = sayIn(locale)
  return page({
    locale,
    name: 'account',
    title: say('accountDeleted'),
    form: 'none',
    body: html`
${sign('good')}
<h1>${say('accountDeleted')}</h1>
<p class="lead">${say('accountDeletedText')}</p>`,
  })
}
