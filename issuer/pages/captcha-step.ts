import { type CaptchaField, captchaField } from './captcha.ts'
import type { PageClient } from './client.ts'
import { codeField } from './factors.ts'
import { foreignName } from './foreign-text.ts'
import { errorSummary, type Problem } from './form.ts'
import { html } from './html.ts'
import type { Locale } from './locale.ts'
import { maskedAddress } from './masked-address.ts'
import { type Page, page } from './page.ts'
import { type Say, sayIn } from './say.ts'
import { type FactorError, factorProblem } from './second-factor.ts'

export type CaptchaError = FactorError | 'failed' | 'unavailable'

export interface CaptchaPage {
  locale: Locale
  client: PageClient
  action: string
  csrf: string
  test: CaptchaField
  /** Of the person, when one is known: a code by mail takes the test's place. */
  address?: string | undefined
  isSent: boolean
  error?: CaptchaError | undefined
}

/** A test for machines by itself. Whoever has no scripts enters a code that comes by mail. */
export const captchaPage = (options: CaptchaPage): Page => {
  const { locale, client, action, csrf, test, address, isSent, error } = options
  const say = sayIn(locale)
  const problems = error === undefined ? [] : [captchaProblem(say, error)]
  const { field, allowed } = captchaField(say, test)
  const masked = address === undefined ? undefined : html`<b>${foreignName(maskedAddress(address), 100)}</b>`
  const send = html`<button class="quiet" name="choice" value="send">${say(isSent ? 'factorSendAgain' : 'factorSend')}</button>`
  return page({
    name: 'captcha',
    locale,
    client,
    title: say('captchaHeading'),
    form: 'leaving',
    isError: problems.length > 0,
    ...(isSent ? {} : allowed),
    body: html`
<h1>${say('captchaHeading')}</h1>
${!isSent && test.provider === 'proof_of_work' && html`<p class="lead">${say('captchaText')}</p>`}
${errorSummary(say, problems)}
${
  isSent && masked
    ? html`<form method="post" action="${action}" novalidate>
<input type="hidden" name="csrf" value="${csrf}">
${codeField({ label: say('factorCode'), hint: say('factorSent', { address: masked }), problems })}
<p class="actions"><button name="choice" value="verify">${say('continueOn')}</button>${send}</p>
</form>`
    : html`<form method="post" action="${action}">
<input type="hidden" name="csrf" value="${csrf}">
${field}
<p class="actions"><button name="choice" value="solved">${say('continueOn')}</button></p>
</form>
${
  masked &&
  html`<details><summary>${say('captchaOther')}</summary>
<form method="post" action="${action}">
<input type="hidden" name="csrf" value="${csrf}">
<p>${say('factorWillSend', { address: masked })}</p>
<p class="actions">${send}</p>
</form>
</details>`
}`
}
<form method="post" action="${action}">
<input type="hidden" name="csrf" value="${csrf}">
<p class="actions"><button class="quiet" name="choice" value="cancel">${say('cancel')}</button></p>
</form>`,
  })
}

const captchaProblem = (say: Say, error: CaptchaError): Problem => {
  if (error === 'failed') return { message: say('captchaFailed') }
  if (error === 'unavailable') return { message: say('unavailableText') }
  return factorProblem(say, error)
}
