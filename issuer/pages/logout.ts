import { accountCard, type PageAccount } from './account.ts'
import type { PageClient } from './client.ts'
import { foreignName } from './foreign-text.ts'
import { html } from './html.ts'
import type { Locale } from './locale.ts'
import { type Page, page } from './page.ts'
import { sayIn } from './say.ts'
import { sign } from './sign.ts'
import { wayOnLink } from './way-on.ts'

export interface LogoutPage {
  locale: Locale
  /** Who asks for it. */
  client?: PageClient | undefined
  account?: PageAccount | undefined
  action: string
  /** Sent as `xsrf`. */
  csrf: string
}

/**
 * OpenID Connect RP-Initiated Logout 1.0 §2. Programs made for Logto know the form by its id and its fields by their
 * names, and what stands before what in a tag. A POST without `logout` stays signed in.
 */
export const logoutPage = ({ locale, client, account, action, csrf }: LogoutPage): Page => {
  const say = sayIn(locale)
  return page({
    locale,
    name: 'logout',
    title: say('signOutTitle'),
    form: 'leaving',
    client,
    namesClientInTitle: false,
    body: html`
<h1>${say('signOutQuestion')}</h1>
${client && html`<p class="lead">${say('signOutAskedBy', { application: foreignName(client.name) })}</p>`}
<form method="post" id="op.logoutForm" action="${action}">
<input type="hidden" name="xsrf" value="${csrf}">
${account && accountCard(account)}
<label class="choice"><input type="checkbox" name="everywhere" value="yes"><span>${say('everywhere')}
<small>${say('everywhereHint')}</small></span></label>
<p class="actions">
<button name="logout" value="yes">${say('signOut')}</button>
<button class="quiet">${say('staySignedIn')}</button>
</p>
</form>`,
  })
}

export interface SignedOutPage {
  locale: Locale
  client?: PageClient | undefined
  wayOn?: string | undefined
}

export const signedOutPage = ({ locale, client, wayOn }: SignedOutPage): Page => {
  const say = sayIn(locale)
  const back = client ? say('backTo', { application: foreignName(client.name) }) : say('backToApplication')
  return page({
    locale,
    name: 'signed_out',
    title: say('signOutTitle'),
    form: 'none',
    client,
    namesClientInTitle: false,
    body: html`
${sign('good')}
<h1>${say('signedOut')}</h1>
${wayOnLink(wayOn, back) ?? html`<p class="lead">${say('mayClose')}</p>`}`,
  })
}
