import type { PageClient } from './client.ts'
import { errorSummary, formOf } from './form.ts'
import { html } from './html.ts'
import type { Locale } from './locale.ts'
import { type Page, page } from './page.ts'
import { passkeyForm, passkeyScriptSource } from './passkey-form.ts'
import { sayIn } from './say.ts'

export interface PasskeyOfferPage {
  locale: Locale
  client: PageClient
  action: string
  csrf: string
  proofId: string
  options: object
  /** The browser first tries by itself. */
  isConditional: boolean
  /** From then on the password alone does not sign in. */
  isSecondFactor: boolean
  /** What the browser made was not accepted. */
  isFailed: boolean
}

/** A passkey for next time, or not now. */
export const passkeyOfferPage = (offer: PasskeyOfferPage): Page => {
  const { locale, client, action, csrf, proofId, options, isConditional, isSecondFactor, isFailed } = offer
  const say = sayIn(locale)
  return page({
    name: 'passkey',
    locale,
    client,
    title: say('passkeyOffer'),
    form: 'leaving',
    isError: isFailed,
    scriptSource: passkeyScriptSource,
    body: html`
<h1>${say('passkeyOffer')}</h1>
<p class="lead">${say('passkeyOfferText')}</p>
${isSecondFactor && html`<p class="lead">${say('passkeyOfferSecond')}</p>`}
${errorSummary(say, isFailed ? [{ message: say('passkeyOfferFailed') }] : [])}
${passkeyForm({
  ...{ action, csrf, proofId, options, isConditional },
  ...{ kind: 'create', isFirst: true, isSecond: true },
  label: say('passkeyOfferMake'),
  failed: say('passkeyOfferFailed'),
})}
${formOf(offer, html`<p class="actions"><button class="quiet" name="choice" value="skip">${say('passkeyOfferSkip')}</button></p>`)}`,
  })
}
