import type { PageClient } from './client.ts'
import { foreignValue } from './foreign-text.ts'
import { type Html, html } from './html.ts'
import type { Locale } from './locale.ts'
import { type Page, page } from './page.ts'
import { sayIn } from './say.ts'

export interface TermsPage {
  locale: Locale
  client: PageClient
  action: string
  csrf: string
  termsOfUse: string
  privacyPolicy?: string | undefined
}

/** What has to be agreed to. The texts open beside the page, so that nothing entered is lost. */
export const termsPage = ({ locale, client, action, csrf, termsOfUse, privacyPolicy }: TermsPage): Page => {
  const say = sayIn(locale)
  return page({
    name: 'terms',
    locale,
    client,
    title: say('termsHeading'),
    form: 'leaving',
    body: html`
<h1>${say('termsHeading')}</h1>
<p class="lead">${say('termsText')}</p>
<ul class="links">
<li>${textLink(termsOfUse, say('termsOfUseLink'), say('termsNewTab'))}</li>
${privacyPolicy !== undefined && html`<li>${textLink(privacyPolicy, say('termsPrivacyLink'), say('termsNewTab'))}</li>`}
</ul>
<form method="post" action="${action}">
<input type="hidden" name="csrf" value="${csrf}">
<p class="actions">
<button name="choice" value="agree">${say('termsAgree')}</button>
<button class="quiet" name="choice" value="cancel">${say('cancel')}</button>
</p>
</form>`,
  })
}

/** Only https is a link: over anything else somebody on the way could write what is agreed to. */
const textLink = (href: string, name: Html, newTab: Html): Html =>
  /^https:\/\//i.test(href)
    ? html`<a href="${href}" target="_blank" rel="noopener noreferrer">${name}</a> <span class="small">${newTab}</span>`
    : html`${name}: ${foreignValue(href)}`
