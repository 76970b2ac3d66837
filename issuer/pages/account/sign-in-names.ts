import { type AddressName, addressInput, shownAddress } from '../address-words.ts'
import { codeField } from '../factors.ts'
import { foreignName } from '../foreign-text.ts'
import { field } from '../form.ts'
import { type Html, html } from '../html.ts'
import type { Page } from '../page.ts'
import { type Say, sayIn } from '../say.ts'
import { type AccountError, problemsOf } from './problems.ts'
import { type AccountShell, accountPage, buttonForm, confirmFirst } from './shell.ts'

interface Editable {
  isEditable: boolean
  error?: AccountError | undefined
}

/** What stands where nothing can be changed, or not yet. */
const instead = (say: Say, shell: AccountShell, isEditable: boolean): Html | undefined =>
  isEditable ? confirmFirst(shell) : html`<p class="small">${say('accountReadOnly')}</p>`

const form = ({ path, csrf }: AccountShell, content: Html): Html => html`
<form method="post" action="${path}" novalidate>
<input type="hidden" name="csrf" value="${csrf}">
${content}
</form>`

const current = (say: Say, label: Html, value: string | undefined): Html =>
  html`<dl class="facts"><dt>${label}</dt><dd>${value === undefined ? say('accountNone') : foreignName(value, 256)}</dd></dl>`

export interface AddressPageOfAccount extends Editable {
  type: AddressName
  /** As stored. */
  address: string | undefined
  /** A code waits for its owner there. */
  waiting?: { proofId: string; address: string } | undefined
  entered?: string | undefined
  /** Where the waiting one is left. */
  otherHref: string
}

/** An email address or a phone number: a code shows whose it is. */
export const accountAddressPage = (
  shell: AccountShell,
  { type, address, waiting, entered = '', otherHref, isEditable, error }: AddressPageOfAccount,
): Page => {
  const say = sayIn(shell.locale)
  const problems = problemsOf(say, error)
  const mayEdit = isEditable && shell.confirmPath === undefined
  const input = addressInput([type])
  const shown = (value: string) => shownAddress({ type, address: value })
  const code =
    waiting &&
    html`<input type="hidden" name="proofId" value="${waiting.proofId}">
${codeField({
  label: say('code'),
  hint: say('factorSent', { address: html`<b>${foreignName(shown(waiting.address), 100)}</b>` }),
  problems,
})}
<p class="actions"><button name="choice" value="verify">${say('continueOn')}</button>
<a class="button quiet" href="${otherHref}">${say(type === 'email' ? 'otherEmail' : 'otherPhone')}</a></p>`
  const another = html`${field({
    id: 'address',
    label: say(type === 'email' ? 'accountNewEmail' : 'accountNewPhone'),
    hint: say(type === 'email' ? 'addressHint' : 'enrolPhoneHint'),
    problems,
    input: (
      described,
    ) => html`<input id="address" name="address" type="${input.type}" value="${entered}" maxlength="256"
 autocomplete="${input.autocomplete}" autocapitalize="none" autocorrect="off" spellcheck="false"${described}>`,
  })}
<p class="actions"><button name="choice" value="send">${say('sendCode')}</button></p>`
  return accountPage(shell, {
    lead: say(type === 'email' ? 'accountEmailText' : 'accountPhoneText'),
    problems,
    content: html`${current(say, say(shell.title), address === undefined ? undefined : shown(address))}
${mayEdit ? form(shell, code ?? another) : instead(say, shell, isEditable)}
${
  mayEdit &&
  address !== undefined &&
  waiting === undefined &&
  buttonForm(shell, { choice: 'remove', text: say('accountRemove'), look: 'danger' })
}`,
  })
}

export interface UsernamePage extends Editable {
  username: string | undefined
  entered?: string | undefined
}

export const usernamePage = (shell: AccountShell, { username, entered, isEditable, error }: UsernamePage): Page => {
  const say = sayIn(shell.locale)
  const problems = problemsOf(say, error)
  const mayEdit = isEditable && shell.confirmPath === undefined
  return accountPage(shell, {
    lead: say('accountUsernameText'),
    problems,
    content: mayEdit
      ? form(
          shell,
          html`${field({
            id: 'username',
            label: say('username'),
            hint: say('usernameHint'),
            problems,
            input: (
              described,
            ) => html`<input id="username" name="username" type="text" value="${entered ?? username ?? ''}" dir="auto"
 autocomplete="username" autocapitalize="none" autocorrect="off" spellcheck="false" maxlength="128"${described}>`,
          })}
<p class="actions"><button name="choice" value="save">${say('accountSave')}</button></p>`,
        )
      : html`${current(say, say('username'), username)}${instead(say, shell, isEditable)}`,
  })
}

export interface PasswordPage extends Editable {
  hasPassword: boolean
  /** How many characters it has at least. */
  length: number
  /** Password managers keep it under this. */
  identifier: string
}

export const passwordPage = (
  shell: AccountShell,
  { hasPassword, length, identifier, isEditable, error }: PasswordPage,
): Page => {
  const say = sayIn(shell.locale)
  const problems = problemsOf(say, error)
  const mayEdit = isEditable && shell.confirmPath === undefined
  return accountPage(shell, {
    lead: say(hasPassword ? 'accountPasswordText' : 'accountPasswordNone'),
    problems,
    content: mayEdit
      ? form(
          shell,
          html`<input class="unseen" type="text" value="${identifier}" autocomplete="username" readonly tabindex="-1" aria-hidden="true">
${field({
  id: 'password',
  label: say('newPassword'),
  hint: say('passwordHint', { count: String(length) }),
  problems,
  input: (described) => html`<input id="password" name="password" type="password" autocomplete="new-password"
 passwordrules="minlength: ${length};"${described}>`,
})}
<p class="actions"><button name="choice" value="save">${say('savePassword')}</button></p>`,
        )
      : instead(say, shell, isEditable),
  })
}
