import { type AddressName, shownAddress } from './address-words.ts'
import type { PageClient } from './client.ts'
import { foreignName } from './foreign-text.ts'
import { errorSummary, field, formOf, lockedText, notice, type Problem, tooManyRequestsText } from './form.ts'
import { type Html, html } from './html.ts'
import type { Locale } from './locale.ts'
import { type Page, page } from './page.ts'
import { durationIn, type Say, sayIn } from './say.ts'

export type CodeError =
  | 'code_missing'
  | 'code_wrong'
  | 'code_limited'
  | 'code_too_soon'
  | 'code_unavailable'
  | 'locked'
  | 'too_many_requests'

export interface CodePage {
  locale: Locale
  client: PageClient
  action: string
  csrf: string
  /** Where the code was sent. */
  type: AddressName
  address: string
  /** Whether there is an account of this address is told to nobody. */
  isOnlyForAccounts: boolean
  /** How long a code is good. */
  minutesGood: number
  /** It is not the first code to this address. */
  isAnother: boolean
  error?: CodeError | undefined
  /** Until they may try again. */
  minutes?: number | undefined
}

/** For the code of a message. The same whether or not there is an account of the address. */
export const codePage = (options: CodePage): Page => {
  const { locale, client, type, isOnlyForAccounts, minutesGood, isAnother, error } = options
  const say = sayIn(locale)
  const wrong = error === undefined ? [] : [problems[error](say, locale, options.minutes)]
  const address = foreignName(shownAddress(options), addressLength)
  const title = say(type === 'email' ? 'checkEmail' : 'checkPhone')
  const duration = durationIn(locale, minutesGood)
  return page({
    locale,
    name: 'code',
    client,
    title,
    form: 'leaving',
    isError: wrong.length > 0,
    body: html`
<h1>${title}</h1>
<p class="lead">${say(isOnlyForAccounts ? 'codeSentIfAccount' : 'codeSent', { address })}</p>
${wrong.length > 0 ? errorSummary(say, wrong) : notice(isAnother ? say('codeSentAgain') : undefined)}
${formOf(
  options,
  html`${field({
    id: 'code',
    label: say('code'),
    hint: say(type === 'email' ? 'codeHintEmail' : 'codeHintPhone', { duration }),
    problems: wrong,
    input: (described) => html`<input id="code" class="code" name="code" type="text" inputmode="numeric" maxlength="16"
 autocomplete="one-time-code" autocapitalize="none" autocorrect="off" spellcheck="false"${described}${
   wrong.length === 0 && html` autofocus`
 }>`,
  })}
<p class="actions"><button name="choice" value="verify">${say('continueOn')}</button></p>
<p class="ways">
<button class="link" name="choice" value="resend">${say('sendCodeAgain')}</button>
<button class="link" name="choice" value="other">${say(type === 'email' ? 'otherEmail' : 'otherPhone')}</button>
</p>`,
)}`,
  })
}

/** All of it: who mistyped it sees that here. */
const addressLength = 256

const at =
  (key: 'codeMissing' | 'codeWrong') =>
  (say: Say): Problem => ({ message: say(key), field: 'code' })

const told =
  (key: 'codeLimited' | 'codeTooSoon' | 'codeUnavailable') =>
  (say: Say): { message: Html } => ({ message: say(key) })

const problems: Readonly<Record<CodeError, (say: Say, locale: Locale, minutes: number | undefined) => Problem>> = {
  code_missing: at('codeMissing'),
  code_wrong: at('codeWrong'),
  code_limited: told('codeLimited'),
  code_too_soon: told('codeTooSoon'),
  code_unavailable: told('codeUnavailable'),
  locked: (say, locale, minutes) => ({ message: lockedText(say, locale, minutes) }),
  too_many_requests: (say, locale, minutes) => ({ message: tooManyRequestsText(say, locale, minutes) }),
}
