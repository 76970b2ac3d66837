import { type AddressName, addressInput, identifierLabel, identifierMissing } from './address-words.ts'
import { type CaptchaField, captchaField } from './captcha.ts'
import type { PageClient } from './client.ts'
import { foreignName } from './foreign-text.ts'
import { errorSummary, field, formOf, type Problem } from './form.ts'
import { html } from './html.ts'
import type { Locale } from './locale.ts'
import { type Page, page } from './page.ts'
import {
  type PageProvider,
  type ProviderNotice,
  providerButtons,
  providerPictures,
  providerProblem,
} from './providers.ts'
import { type Say, sayIn } from './say.ts'
import type { SendError } from './sign-in.ts'

export type AddressError = SendError | 'code_over' | 'email_taken' | 'phone_taken'

/** `register`: of a new account · `reset`: where the password is lost · `profile`: one more of an account. */
export type AddressPurpose = 'register' | 'reset' | 'profile'

export interface AddressPage {
  locale: Locale
  client: PageClient
  action: string
  csrf: string
  purpose: AddressPurpose
  /** Of which one is asked for. */
  types: readonly AddressName[]
  /** What was entered before, or `login_hint`. */
  address?: string | undefined
  error?: AddressError | undefined
  /** There are accounts to sign in with. */
  canSignIn: boolean
  /** The test for machines, where one is due before a text message. */
  captcha?: CaptchaField | undefined
  /** Identity providers by which people may come. Default: none. */
  providers?: readonly PageProvider[] | undefined
  providerNotice?: ProviderNotice | undefined
}

/** Asks for an address, and says that a code goes there. */
export const addressPage = (options: AddressPage): Page => {
  const { locale, client, purpose, types, address = '', error, canSignIn } = options
  const say = sayIn(locale)
  const told = options.providerNotice && providerProblem(say, options.providerNotice)
  const wrong = error === undefined ? (told ? [told] : []) : [problems[error](say, types)]
  const title = say(titles[purpose])
  const { type, autocomplete } = addressInput(types)
  const test = options.captcha && captchaField(say, options.captcha, 'captchaWithoutScriptByMail')
  const back = purpose !== 'profile' && canSignIn && (purpose === 'register' ? 'haveAccount' : 'backToSignIn')
  return page({
    locale,
    name: purpose,
    client,
    title,
    form: 'leaving',
    isError: wrong.length > 0,
    ...test?.allowed,
    pictures: providerPictures(options.providers),
    body: html`
<h1>${title}</h1>
<p class="lead">${purpose === 'register' ? say('signInTo', { application: foreignName(client.name) }) : say(leads[purpose])}</p>
${errorSummary(say, wrong)}
${formOf(
  options,
  html`${field({
    id: 'address',
    label: say(identifierLabel(types)),
    hint: say(purpose === 'reset' ? 'resetHint' : 'addressHint'),
    problems: wrong,
    input: (described) => html`<input id="address" name="address" type="${type}" value="${address}" dir="auto"
 autocomplete="${autocomplete}" autocapitalize="none" autocorrect="off" spellcheck="false"${described}${
   wrong.length === 0 && html` autofocus`
 }>`,
  })}
${test?.field}
<p class="actions"><button name="choice" value="code">${say('continueOn')}</button></p>`,
)}
${providerButtons(say, options)}
${
  // A form of its own: whoever goes back does not wait for the test.
  back &&
  formOf(options, html`<p class="ways"><button class="link" name="choice" value="back">${say(back)}</button></p>`)
}`,
  })
}

const titles = { register: 'createAccount', reset: 'resetTitle', profile: 'profileTitle' } as const
const leads = { reset: 'resetLead', profile: 'profileLead' } as const

const problems: Readonly<Record<AddressError, (say: Say, types: readonly AddressName[]) => Problem>> = {
  address_missing: (say, types) => ({ message: say(identifierMissing(types)), field: 'address' }),
  email_taken: (say) => ({ message: say('emailTaken'), field: 'address' }),
  phone_taken: (say) => ({ message: say('phoneTaken'), field: 'address' }),
  code_limited: (say) => ({ message: say('codeLimited') }),
  code_unavailable: (say) => ({ message: say('codeUnavailable') }),
  code_over: (say) => ({ message: say('codeOver') }),
  captcha_failed: (say) => ({ message: say('captchaFailed') }),
  captcha_unavailable: (say) => ({ message: say('unavailableText') }),
}
