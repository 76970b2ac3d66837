import type { PageClient } from './client.ts'
import { foreignName } from './foreign-text.ts'
import { type Html, html } from './html.ts'
import type { Locale } from './locale.ts'
import { type Page, page } from './page.ts'
import { durationIn, type Say, sayIn } from './say.ts'

export type SignInError =
  | 'invalid_credentials'
  | 'locked'
  | 'identifier_missing'
  | 'password_missing'
  | 'too_long'
  | 'too_many_requests'

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
  /** Why somebody who is signed in is asked again. */
  reasons?: 'login' | 'max_age' | 'acr' | undefined
  /** Only this person may go on: their identifier. */
  account?: string | undefined
  canCancel: boolean
}

/** Identifier and password on one page, so that password managers find both. */
export const signInPage = (options: SignInPage): Page => {
  const { locale, client, action, csrf, keep, error, reasons, account, canCancel } = options
  const say = sayIn(locale)
  const identifier = account ?? options.identifier ?? ''
  const problem = error && problems[error](say, locale, options.minutes)
  const messageOf = (field: Field) => (problem?.field === field ? problem.message : undefined)
  const isReturning = account !== undefined || reasons !== undefined
  const isNamed = identifier !== ''
  return page({
    locale,
    name: 'sign_in',
    client,
    title: say('signIn'),
    form: 'leaving',
    isError: problem !== undefined,
    body: html`
<h1>${say(isReturning ? 'reauthenticate' : 'signIn')}</h1>
<p class="lead">${introduction(say, client, reasons)}</p>
${problem && errorSummary(say, problem)}
<form method="post" action="${action}" novalidate>
<input type="hidden" name="csrf" value="${csrf}">
${field({
  id: 'identifier',
  label: say(account === undefined ? 'identifier' : 'account'),
  message: messageOf('identifier'),
  input: (described) => html`<input id="identifier" name="identifier" type="text" value="${identifier}" dir="auto"
 autocomplete="username webauthn" autocapitalize="none" autocorrect="off" spellcheck="false"${described}${
   account === undefined ? undefined : html` readonly`
 }${problem === undefined && !isNamed && html` autofocus`}>`,
})}
${field({
  id: 'password',
  label: say('password'),
  message: messageOf('password'),
  input: (described) => html`<input id="password" name="password" type="password"
 autocomplete="current-password"${described}${problem === undefined && isNamed && html` autofocus`}>`,
})}
<label class="choice"><input type="checkbox" name="keep" value="yes"${keep && html` checked`}><span>${say('keep')}</span></label>
<p class="actions">
<button name="choice" value="sign_in">${say('signIn')}</button>
${canCancel && html`<button class="quiet" name="choice" value="cancel">${say('cancel')}</button>`}
</p>
</form>`,
  })
}

const introduction = (say: Say, client: PageClient, reason: SignInPage['reasons']): Html => {
  const application = foreignName(client.name)
  if (reason === 'login') return say('reasonLogin', { application })
  if (reason === 'max_age') return say('reasonMaxAge', { application })
  if (reason === 'acr') return say('reasonAcr', { application })
  return say('signInTo', { application })
}

type Field = 'identifier' | 'password'
interface Problem {
  message: Html
  /** Where it can be put right, when that is one place. */
  field?: Field
}

const problems: Readonly<Record<SignInError, (say: Say, locale: Locale, minutes: number | undefined) => Problem>> = {
  invalid_credentials: (say) => ({ message: say('invalidCredentials'), field: 'password' }),
  identifier_missing: (say) => ({ message: say('identifierMissing'), field: 'identifier' }),
  password_missing: (say) => ({ message: say('passwordMissing'), field: 'password' }),
  too_long: (say) => ({ message: say('tooLong') }),
  locked: (say, locale, minutes) => ({
    message: minutes === undefined ? say('lockedForNow') : say('locked', { duration: durationIn(locale, minutes) }),
  }),
  too_many_requests: (say, locale, minutes) => ({
    message:
      minutes === undefined
        ? say('tooManyRequestsForNow')
        : say('tooManyRequests', { duration: durationIn(locale, minutes) }),
  }),
}

/** It has the focus, so that it is read first; a link leads to the field. */
const errorSummary = (
  say: Say,
  { message, field }: Problem,
): Html => html`<div class="problem" role="alert" tabindex="-1" autofocus aria-labelledby="problem">
<h2 id="problem">${say('problemHeading')}</h2>
<p>${field === undefined ? message : html`<a href="#${field}">${message}</a>`}</p>
</div>`

const field = (options: {
  id: Field
  label: Html
  message: Html | undefined
  input: (attributes: Html | undefined) => Html
}): Html => {
  const { id, label, message, input } = options
  const attributes = message && html` aria-invalid="true" aria-describedby="${id}-error"`
  return html`<div class="field"><label for="${id}">${label}</label>
${message && html`<p class="message" id="${id}-error">${message}</p>`}
${input(attributes)}</div>`
}
