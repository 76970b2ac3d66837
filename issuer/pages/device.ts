import type { PageClient } from './client.ts'
import { foreignName } from './foreign-text.ts'
import { errorSummary, field, formOf, type Problem, tooManyRequestsText } from './form.ts'
import { html } from './html.ts'
import type { Locale } from './locale.ts'
import { type Page, page } from './page.ts'
import { type Say, sayIn } from './say.ts'
import { sign } from './sign.ts'

export type DeviceCodeError = 'missing' | 'wrong' | 'too_many_requests'

export interface DevicePage {
  locale: Locale
  action: string
  csrf: string
  /** What was entered, or stood in the link. */
  userCode: string
  /** It stood in the link that the person followed (RFC 8628 §3.3.1). */
  isFromLink: boolean
  error?: DeviceCodeError | undefined
}

/** Where a person enters the code that a device shows (RFC 8628 §3.3). */
export const devicePage = (options: DevicePage): Page => {
  const { locale, userCode, isFromLink, error } = options
  const say = sayIn(locale)
  const wrong = error === undefined ? [] : [problems[error](say, locale)]
  const isComparison = isFromLink && wrong.length === 0
  return page({
    locale,
    name: 'device',
    title: say('deviceTitle'),
    form: 'leaving',
    isError: wrong.length > 0,
    body: html`
<h1>${say('deviceTitle')}</h1>
<p class="lead">${say(isComparison ? 'deviceCompare' : 'deviceEnter')}</p>
${errorSummary(say, wrong)}
${formOf(
  options,
  html`${field({
    id: 'user_code',
    label: say('deviceCode'),
    hint: say('deviceCodeHint'),
    problems: wrong,
    input: (
      described,
    ) => html`<input id="user_code" class="code" name="user_code" type="text" maxlength="32" value="${userCode}"
 autocomplete="off" autocapitalize="characters" autocorrect="off" spellcheck="false"${described}${
   wrong.length === 0 && !isComparison && html` autofocus`
 }>`,
  })}
<div class="warning" role="note"><p>${say('deviceOnlyYours')}</p></div>
<p class="actions"><button>${say('continueOn')}</button></p>`,
)}`,
  })
}

const at =
  (key: 'codeMissing' | 'deviceCodeWrong') =>
  (say: Say): Problem => ({ message: say(key), field: 'user_code' })

const problems: Readonly<Record<DeviceCodeError, (say: Say, locale: Locale) => Problem>> = {
  missing: at('codeMissing'),
  wrong: at('deviceCodeWrong'),
  too_many_requests: (say, locale) => ({ message: tooManyRequestsText(say, locale, undefined) }),
}

export interface DeviceDonePage {
  locale: Locale
  client: PageClient
  isAllowed: boolean
}

/** What became of it. The device finds out by itself. */
export const deviceDonePage = ({ locale, client, isAllowed }: DeviceDonePage): Page => {
  const say = sayIn(locale)
  const application = foreignName(client.name)
  const heading = isAllowed ? say('deviceAllowed') : say('deviceRefused')
  return page({
    locale,
    name: 'device',
    title: heading,
    client,
    form: 'none',
    body: html`
${sign(isAllowed ? 'good' : 'bad')}
<h1>${heading}</h1>
<p class="lead">${isAllowed ? say('deviceAllowedText', { application }) : say('deviceRefusedText', { application })}</p>
<p class="small">${say('mayClose')}</p>`,
  })
}
