import { codeField, factorName, type PageFactor } from '../factors.ts'
import { foreignName } from '../foreign-text.ts'
import { field } from '../form.ts'
import { type Html, html } from '../html.ts'
import { maskedAddress } from '../masked-address.ts'
import type { Page } from '../page.ts'
import { passkeyForm, passkeyScriptSource } from '../passkey-form.ts'
import { durationIn, type Say, sayIn } from '../say.ts'
import { type AccountError, problemsOf } from './problems.ts'
import { type AccountShell, accountPage, buttonForm } from './shell.ts'

export type ConfirmedBy = 'password' | PageFactor | 'federated'

/** With what the person confirms it, and what its form needs. */
export type Asked =
  | { kind: 'password'; identifier: string }
  | { kind: 'totp' | 'backup_code' }
  /** `proofId`: a code is on its way. */
  | { kind: 'email_code' | 'phone_code'; address: string; proofId: string | undefined }
  | { kind: 'passkey'; proofId: string; options: object }
  | { kind: 'federated'; providers: readonly { id: string; name: string }[] }

export interface ConfirmPage {
  /** Undefined: there is nothing. */
  asked: Asked | undefined
  /** Other ways, each at its own address. */
  others: readonly { kind: ConfirmedBy; href: string }[]
  /** Which page of ours comes afterwards. */
  next: string
  /** How long it counts, in minutes. */
  minutes: number
  error?: AccountError | undefined
}

/** The person shows again who they are, with anything that is theirs. */
export const accountConfirmPage = (shell: AccountShell, { asked, others, next, minutes, error }: ConfirmPage): Page => {
  const say = sayIn(shell.locale)
  const problems = problemsOf(say, error)
  return accountPage(shell, {
    lead: asked
      ? say('accountConfirmText', { duration: durationIn(shell.locale, minutes) })
      : say('accountConfirmNone'),
    problems,
    // The answer to its form leads to the provider.
    form: asked?.kind === 'federated' ? 'leaving' : undefined,
    scriptSource: asked?.kind === 'passkey' ? passkeyScriptSource : undefined,
    content: html`${asked && forms[asked.kind](say, { ...shell, next, problems }, asked as never)}
${
  others.length > 0 &&
  html`<section><h2>${say('accountConfirmOther')}</h2>
<ul class="rows">
${others.map(
  ({ kind, href }) =>
    html`<li${kind === 'passkey' && html` class="scripted"`}><a href="${href}"><b>${wayName(say, kind)}</b></a></li>\n`,
)}</ul></section>`
}`,
  })
}

const wayName = (say: Say, kind: ConfirmedBy): Html => {
  if (kind === 'federated') return say('accountIdentities')
  return kind === 'password' ? say('password') : factorName(say, kind)
}

interface Around extends Pick<AccountShell, 'path' | 'csrf'> {
  next: string
  problems: ReturnType<typeof problemsOf>
}

const form = ({ path, csrf, next }: Around, kind: ConfirmedBy, content: Html): Html => html`
<form method="post" action="${path}" novalidate>
<input type="hidden" name="csrf" value="${csrf}">
<input type="hidden" name="next" value="${next}">
<input type="hidden" name="kind" value="${kind}">
${content}
</form>`

const verify = (say: Say) =>
  html`<p class="actions"><button name="choice" value="verify">${say('continueOn')}</button></p>`

const sent = (say: Say, around: Around, { kind, address, proofId }: Extract<Asked, { address: string }>): Html => {
  const masked = html`<b>${foreignName(maskedAddress(address), 100)}</b>`
  if (proofId === undefined) {
    return form(
      around,
      kind,
      html`<p>${say('factorWillSend', { address: masked })}</p>
<p class="actions"><button name="choice" value="send">${say('factorSend')}</button></p>`,
    )
  }
  return form(
    around,
    kind,
    html`<input type="hidden" name="proofId" value="${proofId}">
${codeField({ label: say('factorCode'), hint: say('factorSent', { address: masked }), problems: around.problems })}
<p class="actions"><button name="choice" value="verify">${say('continueOn')}</button>
<button class="quiet" name="choice" value="send">${say('factorSendAgain')}</button></p>`,
  )
}

const forms: { [Kind in ConfirmedBy]: (say: Say, around: Around, asked: Extract<Asked, { kind: Kind }>) => Html } = {
  password: (say, around, { identifier }) =>
    form(
      around,
      'password',
      html`<input class="unseen" type="text" value="${identifier}" autocomplete="username" readonly tabindex="-1" aria-hidden="true">
${field({
  id: 'password',
  label: say('password'),
  problems: around.problems,
  input: (described) =>
    html`<input id="password" name="password" type="password" autocomplete="current-password"${described}${
      around.problems.length === 0 && html` autofocus`
    }>`,
})}
${verify(say)}`,
    ),
  totp: (say, around) =>
    form(
      around,
      'totp',
      html`${codeField({ label: say('factorTotpCode'), hint: say('factorTotpHint'), problems: around.problems })}
${verify(say)}`,
    ),
  backup_code: (say, around) =>
    form(
      around,
      'backup_code',
      html`${field({
        id: 'code',
        label: say('factorBackup'),
        hint: say('factorBackupHint'),
        problems: around.problems,
        input: (described) => html`<input id="code" name="code" type="text" maxlength="32" autocomplete="off"
 autocapitalize="none" autocorrect="off" spellcheck="false"${described}>`,
      })}
${verify(say)}`,
    ),
  email_code: sent,
  phone_code: sent,
  federated: (say, { next, ...around }, { providers }) =>
    html`${providers.map(({ id, name }) =>
      buttonForm(around, {
        choice: 'provider',
        fields: { next, connector: id },
        text: say('continueWith', { provider: foreignName(name) }),
      }),
    )}`,
  passkey: (say, { path, csrf, next }, { proofId, options }) => html`<noscript><p class="message">${say(
    'factorPasskeyWithoutScript',
  )}</p></noscript>
${passkeyForm({
  ...{ csrf, proofId, options },
  // The script sends its own fields alone; the page reads where to go on from its address.
  action: `${path}?${new URLSearchParams({ next, with: 'passkey' })}`,
  kind: 'get',
  isSecond: true,
  label: say('factorPasskeyUse'),
  failed: say('factorPasskeyFailed'),
})}`,
}
