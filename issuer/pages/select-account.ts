import { accountCard, type PageAccount } from './account.ts'
import type { PageClient } from './client.ts'
import { foreignName } from './foreign-text.ts'
import { html } from './html.ts'
import type { Locale } from './locale.ts'
import { type Page, page } from './page.ts'
import { sayIn } from './say.ts'

export interface SelectAccountPage {
  locale: Locale
  client: PageClient
  action: string
  csrf: string
  account: PageAccount
}

/** OpenID Connect Core §3.1.2.1, `prompt=select_account`. */
export const selectAccountPage = ({ locale, client, action, csrf, account }: SelectAccountPage): Page => {
  const say = sayIn(locale)
  return page({
    locale,
    name: 'select_account',
    client,
    title: say('chooseAccount'),
    form: 'leaving',
    body: html`
<h1>${say('chooseAccount')}</h1>
<p class="lead">${say('signInTo', { application: foreignName(client.name) })}</p>
<form method="post" action="${action}">
<input type="hidden" name="csrf" value="${csrf}">
${accountCard(account)}
<p class="actions">
<button name="choice" value="continue">${say('continueAs', { name: foreignName(account.name || account.identifier) })}</button>
<button class="quiet" name="choice" value="another">${say('anotherAccount')}</button>
</p>
</form>`,
  })
}
