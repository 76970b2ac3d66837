import type { PageClient } from './client.ts'
import { foreignName } from './foreign-text.ts'
import { errorSummary, field, formOf, type Problem, tooManyRequestsText } from './form.ts'
import { type Html, html } from './html.ts'
import type { Locale } from './locale.ts'
import { type Page, page } from './page.ts'
import { type PasswordIssue, passwordProblems } from './password-words.ts'
import {
  type PageProvider,
  type ProviderNotice,
  providerButtons,
  providerPictures,
  providerProblem,
} from './providers.ts'
import { type Say, sayIn } from './say.ts'

export type UsernameError = 'missing' | 'invalid' | 'taken' | 'too_many_requests'
export type PasswordError = 'missing' | 'same' | 'too_long' | { issues: readonly PasswordIssue[] }

/** `register`: of a new account · `reset`: after the old one was lost · `expired`: instead of one that is too old. */
export type DetailsPurpose = 'register' | 'profile' | 'reset' | 'expired'

export interface DetailsPage {
  locale: Locale
  client: PageClient
  action: string
  csrf: string
  purpose: DetailsPurpose
  asksUsername: boolean
  /** How many characters a password has at least; undefined: none is asked for. */
  passwordLength: number | undefined
  username?: string | undefined
  /** By what the person is known: password managers keep the new password under it. */
  account?: string | undefined
  errors?: { username?: UsernameError | undefined; password?: PasswordError | undefined } | undefined
  /** There are accounts to sign in with. */
  canSignIn: boolean
  /** Identity providers by which people may come. Default: none. */
  providers?: readonly PageProvider[] | undefined
  providerNotice?: ProviderNotice | undefined
}

/** A user name, a new password, or both. */
export const detailsPage = (options: DetailsPage): Page => {
  const { locale, client, purpose, asksUsername, passwordLength, account, errors = {}, canSignIn } = options
  const say = sayIn(locale)
  const entered = [...usernameProblems(say, locale, errors.username), ...problemsOfPassword(say, errors.password)]
  const told = options.providerNotice && providerProblem(say, options.providerNotice)
  const wrong = entered.length === 0 && told ? [told] : entered
  const isNew = purpose === 'reset' || purpose === 'expired'
  const title = say(isNew ? 'newPasswordTitle' : purpose === 'register' ? 'createAccount' : 'profileTitle')
  const isFirst = (name: 'username' | 'password') =>
    wrong.length === 0 && (name === 'username' ? asksUsername : !asksUsername) && html` autofocus`
  return page({
    locale,
    name: purpose === 'expired' ? 'reset' : purpose,
    client,
    title,
    form: 'leaving',
    isError: wrong.length > 0,
    pictures: providerPictures(options.providers),
    body: html`
<h1>${title}</h1>
<p class="lead">${
      purpose === 'register' ? say('signInTo', { application: foreignName(client.name) }) : say(leads[purpose])
    }</p>
${errorSummary(say, wrong)}
${
  (asksUsername || passwordLength !== undefined) &&
  formOf(
    options,
    html`${
      asksUsername
        ? field({
            id: 'username',
            label: say('username'),
            hint: say('usernameHint'),
            problems: wrong,
            input: (
              described,
            ) => html`<input id="username" name="username" type="text" value="${options.username ?? ''}"
 dir="auto" autocomplete="username" autocapitalize="none" autocorrect="off" spellcheck="false" maxlength="128"${described}${isFirst('username')}>`,
          })
        : account !== undefined &&
          html`<input class="unseen" type="text" value="${account}" autocomplete="username" readonly tabindex="-1" aria-hidden="true">`
    }
${
  passwordLength !== undefined &&
  field({
    id: 'password',
    label: say(isNew ? 'newPassword' : 'password'),
    hint: say('passwordHint', { count: String(passwordLength) }),
    problems: wrong,
    input: (described) => html`<input id="password" name="password" type="password" autocomplete="new-password"
 passwordrules="minlength: ${passwordLength};"${described}${isFirst('password')}>`,
  })
}
<p class="actions"><button name="choice" value="details">${say(isNew ? 'savePassword' : 'continueOn')}</button></p>`,
  )
}
${providerButtons(say, options)}
${
  (purpose === 'register' || purpose === 'reset') &&
  canSignIn &&
  formOf(
    options,
    html`<p class="ways"><button class="link" name="choice" value="back">${say(purpose === 'register' ? 'haveAccount' : 'backToSignIn')}</button></p>`,
  )
}`,
  })
}

const leads = { profile: 'profileLead', reset: 'newPasswordLead', expired: 'passwordExpiredLead' } as const

const usernameTexts = {
  missing: 'usernameMissing',
  invalid: 'usernameInvalid',
  taken: 'usernameTaken',
} as const

const usernameProblems = (say: Say, locale: Locale, error: UsernameError | undefined): Problem[] => {
  if (error === undefined) return []
  if (error === 'too_many_requests') return [{ message: tooManyRequestsText(say, locale, undefined) }]
  return [{ message: say(usernameTexts[error]), field: 'username' }]
}

const passwordTexts = { missing: 'choosePassword', same: 'passwordSame', too_long: 'tooLong' } as const

const problemsOfPassword = (say: Say, error: PasswordError | undefined): Problem[] => {
  if (error === undefined) return []
  const messages: Html[] = typeof error === 'string' ? [say(passwordTexts[error])] : passwordProblems(say, error.issues)
  return messages.map((message) => ({ message, field: 'password' }))
}
