import { type IdentifierName, identifierLabel, identifierMissing } from './address-words.ts'
import { type CaptchaField, captchaField } from './captcha.ts'
import type { PageClient } from './client.ts'
import { foreignName } from './foreign-text.ts'
import { errorSummary, field, formOf, lockedText, notice, type Problem, tooManyRequestsText } from './form.ts'
import { type Html, html } from './html.ts'
import type { Locale } from './locale.ts'
import type { MessageKey } from './messages/translation.ts'
import { type Page, page } from './page.ts'
import { makesPasskeysField, passkeyForm, passkeyScriptSource } from './passkey-form.ts'
import {
  linkingText,
  type PageProvider,
  type ProviderNotice,
  providerButtons,
  providerPictures,
  providerProblem,
} from './providers.ts'
import { type Say, sayIn } from './say.ts'

export type SignInError =
  | 'invalid_credentials'
  | 'locked'
  | 'identifier_missing'
  | 'password_missing'
  | 'too_long'
  | 'too_many_requests'
  | SendError
  | 'code_over'
  | 'passkey_failed'
  | 'enterprise_unknown'

/** Why no code was sent. */
export type SendError =
  | 'address_missing'
  | 'code_limited'
  | 'code_unavailable'
  | 'captcha_failed'
  | 'captcha_unavailable'

export interface SignInPage {
  locale: Locale
  client: PageClient
  action: string
  csrf: string
  /** What was entered before, or `login_hint`. */
  identifier?: string | undefined
  keep?: boolean | undefined
  error?: SignInError | undefined
  /** Until they may try again. */
  minutes?: number | undefined
  /** Why somebody who is signed in, or has proven something, is asked again. */
  reasons?: 'login' | 'max_age' | 'acr' | 'required' | 'another_factor' | undefined
  /** Only this person may go on: their identifier. */
  account?: string | undefined
  canCancel: boolean
  /** By what people are known here. Default: all. */
  identifiers?: readonly IdentifierName[] | undefined
  /** Default true. */
  byPassword?: boolean | undefined
  /** The addresses that a code can be sent to. Default: none. */
  byCode?: readonly IdentifierName[] | undefined
  canRegister?: boolean | undefined
  canReset?: boolean | undefined
  /** A password was set just now. */
  isPasswordChanged?: boolean | undefined
  /** Without a button and a list it only says whether the browser can make passkeys. */
  passkey?: { proofId: string; options: unknown; hasButton: boolean; isConditional: boolean } | undefined
  /** The test for machines, where one is due. */
  captcha?: CaptchaField | undefined
  /** Identity providers by which people may come. Default: none. */
  providers?: readonly PageProvider[] | undefined
  /** An address leads to the enterprise of whoever has it. */
  hasEnterprises?: boolean | undefined
  /** What came of a provider that was asked. */
  providerNotice?: ProviderNotice | undefined
}

/** Identifier and password on one page, so that password managers find both. */
export const signInPage = (options: SignInPage): Page => {
  const { locale, client, error, reasons, account, passkey, providerNotice, byPassword = true, byCode = [] } = options
  const { providers = [], hasEnterprises = false } = options
  const say = sayIn(locale)
  const told = providerNotice && providerProblem(say, providerNotice)
  const problem = error ? problems[error](say, locale, options) : told
  const wrong = problem ? [problem] : []
  const test = options.captcha && captchaField(say, options.captcha)
  const isLinking = providerNotice?.outcome === 'prove_first'
  const isReturning = account !== undefined || reasons !== undefined || isLinking
  return page({
    locale,
    name: 'sign_in',
    client,
    title: say('signIn'),
    form: 'leaving',
    isError: problem !== undefined,
    scriptSource: scriptSources(passkey && passkeyScriptSource, test?.allowed.scriptSource),
    frameSource: test?.allowed.frameSource,
    pictures: providerPictures(providers),
    body: html`
<h1>${say(isReturning ? 'reauthenticate' : 'signIn')}</h1>
<p class="lead">${isLinking ? linkingText(say, providerNotice) : introduction(say, client, reasons)}</p>
${problem ? errorSummary(say, wrong) : notice(options.isPasswordChanged ? say('passwordChanged') : undefined)}
${
  (byPassword || byCode.length > 0 || hasEnterprises) &&
  formOf(options, [
    fields(say, options, wrong),
    passkey && makesPasskeysField,
    test?.field,
    html`
<p class="actions">
${byPassword && html`<button name="choice" value="sign_in">${say('signIn')}</button>`}
${byCode.length > 0 && html`<button${byPassword && html` class="quiet"`} name="choice" value="code">${say('sendCode')}</button>`}
${hasEnterprises && html`<button${(byPassword || byCode.length > 0) && html` class="quiet"`} name="choice" value="enterprise">${say('enterprise')}</button>`}
</p>`,
  ])
}
${
  passkey &&
  passkeyForm({
    ...options,
    ...passkey,
    kind: 'get',
    label: passkey.hasButton ? say('signInWithPasskey') : undefined,
    failed: say('passkeyFailed'),
    isQuiet: byPassword || byCode.length > 0,
  })
}
${providerButtons(say, options)}
${otherWays(say, options)}`,
  })
}

const scriptSources = (...sources: readonly (string | undefined)[]): string | undefined =>
  [...new Set(sources.filter((source) => source !== undefined))].join(' ') || undefined

const fields = (say: Say, options: SignInPage, wrong: readonly Problem[]): Html => {
  const { account, keep, identifiers = [], byPassword = true } = options
  const identifier = account ?? options.identifier ?? ''
  const isFine = wrong.length === 0
  return html`${field({
    id: 'identifier',
    label: say(account === undefined ? identifierLabel(identifiers) : 'account'),
    problems: wrong,
    input: (described) => html`<input id="identifier" name="identifier" type="text" value="${identifier}" dir="auto"
 autocomplete="username webauthn" autocapitalize="none" autocorrect="off" spellcheck="false"${described}${
   account === undefined ? undefined : html` readonly`
 }${isFine && identifier === '' && html` autofocus`}>`,
  })}
${
  byPassword &&
  field({
    id: 'password',
    label: say('password'),
    problems: wrong,
    input: (described) => html`<input id="password" name="password" type="password"
 autocomplete="current-password"${described}${isFine && identifier !== '' && html` autofocus`}>`,
  })
}
<label class="choice"><input type="checkbox" name="keep" value="yes"${keep && html` checked`}><span>${say('keep')}</span></label>`
}

/** A form of their own, behind all others: Enter signs in. */
const otherWays = (say: Say, options: SignInPage): Html | undefined => {
  const { canRegister, canReset, canCancel } = options
  const ways = [
    canReset && html`<button class="link" name="choice" value="reset">${say('forgotPassword')}</button>`,
    canRegister && html`<button class="link" name="choice" value="register">${say('createAccount')}</button>`,
    canCancel && html`<button class="link" name="choice" value="cancel">${say('cancel')}</button>`,
  ].filter((way) => way !== false && way !== undefined)
  return ways.length > 0 ? formOf(options, html`<p class="ways">${ways}</p>`) : undefined
}

const introduction = (say: Say, client: PageClient, reason: SignInPage['reasons']): Html => {
  const application = foreignName(client.name)
  if (reason === 'login') return say('reasonLogin', { application })
  if (reason === 'max_age') return say('reasonMaxAge', { application })
  if (reason === 'acr' || reason === 'required') return say('reasonAcr', { application })
  if (reason === 'another_factor') return say('reasonAnotherFactor')
  return say('signInTo', { application })
}

type Told = (say: Say, locale: Locale, options: SignInPage) => Problem

const at =
  (key: MessageKey & ('passwordMissing' | 'invalidCredentials'), name: string): Told =>
  (say) => ({ message: say(key), field: name })

const problems: Readonly<Record<SignInError, Told>> = {
  invalid_credentials: at('invalidCredentials', 'password'),
  identifier_missing: (say, _locale, { identifiers = [] }) => ({
    message: say(identifierMissing(identifiers)),
    field: 'identifier',
  }),
  password_missing: at('passwordMissing', 'password'),
  address_missing: (say, _locale, { byCode = [] }) => ({
    message: say(identifierMissing(byCode)),
    field: 'identifier',
  }),
  too_long: (say) => ({ message: say('tooLong') }),
  locked: (say, locale, { minutes }) => ({ message: lockedText(say, locale, minutes) }),
  too_many_requests: (say, locale, { minutes }) => ({ message: tooManyRequestsText(say, locale, minutes) }),
  code_limited: (say) => ({ message: say('codeLimited') }),
  code_unavailable: (say) => ({ message: say('codeUnavailable') }),
  code_over: (say) => ({ message: say('codeOver') }),
  captcha_failed: (say) => ({ message: say('captchaFailed') }),
  captcha_unavailable: (say) => ({ message: say('unavailableText') }),
  passkey_failed: (say) => ({ message: say('passkeyFailed') }),
  enterprise_unknown: (say) => ({ message: say('enterpriseUnknown'), field: 'identifier' }),
}
