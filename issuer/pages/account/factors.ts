import type { QrPicture } from '../enrol.ts'
import { codeField } from '../factors.ts'
import { foreignName } from '../foreign-text.ts'
import { field } from '../form.ts'
import { type Html, html } from '../html.ts'
import type { Page } from '../page.ts'
import { passkeyForm, passkeyScriptSource } from '../passkey-form.ts'
import { type Say, sayIn } from '../say.ts'
import { type AccountError, problemsOf } from './problems.ts'
import { type AccountShell, accountPage, buttonForm, confirmFirst } from './shell.ts'
import { timeAgo } from './times.ts'

interface FactorPage {
  isEditable: boolean
  error?: AccountError | undefined
}

export interface FactorOnPage {
  id: string
  name: string
  createdAt: Date
  lastUsedAt: Date | undefined
}

const mayEdit = (shell: AccountShell, { isEditable }: FactorPage) => isEditable && shell.confirmPath === undefined

const instead = (say: Say, shell: AccountShell, page: FactorPage): Html | undefined => {
  if (!page.isEditable) return html`<p class="small">${say('accountReadOnly')}</p>`
  return confirmFirst(shell)
}

const used = (say: Say, shell: AccountShell, { createdAt, lastUsedAt }: Omit<FactorOnPage, 'id' | 'name'>): Html =>
  html`<p>${say('accountFactorSince', { time: timeAgo(shell, createdAt) })}</p>
<p>${lastUsedAt === undefined ? say('accountFactorUnused') : say('accountFactorUsed', { time: timeAgo(shell, lastUsedAt) })}</p>`

const form = ({ path, csrf }: AccountShell, content: Html): Html => html`
<form method="post" action="${path}" novalidate>
<input type="hidden" name="csrf" value="${csrf}">
${content}
</form>`

export interface PasskeysPage extends FactorPage {
  passkeys: readonly FactorOnPage[]
  /** One is being made. */
  making?: { proofId: string; options: object } | undefined
}

export const passkeysPage = (shell: AccountShell, page: PasskeysPage): Page => {
  const { passkeys, making, error } = page
  const say = sayIn(shell.locale)
  const problems = problemsOf(say, error)
  const isEdited = mayEdit(shell, page)
  return accountPage(shell, {
    lead: say('accountPasskeysText'),
    problems,
    scriptSource: making ? passkeyScriptSource : undefined,
    content: html`${!isEdited && instead(say, shell, page)}
${passkeys.length === 0 && html`<p class="small">${say('accountPasskeysNone')}</p>`}
<ul class="entries">
${passkeys.map(
  (passkey, index) => html`<li class="entry"><h2>${foreignName(passkey.name)}</h2>
${used(say, shell, passkey)}
${
  isEdited &&
  html`${form(
    shell,
    html`<input type="hidden" name="id" value="${passkey.id}">
${field({
  id: `name-${index}`,
  label: say('accountPasskeyName'),
  problems: [],
  input: () =>
    html`<input id="name-${index}" name="name" type="text" value="${passkey.name}" dir="auto" maxlength="128" autocomplete="off">`,
})}
<p class="actions"><button class="quiet" name="choice" value="rename" aria-label="${say('accountPasskeyRename', { name: passkey.name })}">${say('accountSave')}</button></p>`,
  )}${buttonForm(shell, {
    choice: 'remove',
    fields: { id: passkey.id },
    text: say('accountRemove'),
    label: say('accountRemoveNamed', { name: passkey.name }),
    look: 'danger',
  })}`
}</li>
`,
)}</ul>
${
  isEdited &&
  (making
    ? html`<noscript><p class="message">${say('accountPasskeyWithoutScript')}</p></noscript>${passkeyForm({
        ...{ csrf: shell.csrf, action: shell.path, ...making },
        kind: 'create',
        isSecond: true,
        isFirst: passkeys.length === 0,
        label: say('enrolPasskeyMake'),
        failed: say('accountPasskeyFailed'),
      })}`
    : buttonForm(shell, { choice: 'new', text: say('accountPasskeyAdd'), look: 'main' }))
}`,
  })
}

export interface AuthenticatorPage extends FactorPage {
  authenticator: FactorOnPage | undefined
  /** One is being set up. */
  making?: { secret: string; uri: string; picture: QrPicture } | undefined
}

export const authenticatorPage = (shell: AccountShell, page: AuthenticatorPage): Page => {
  const { authenticator, making, error } = page
  const say = sayIn(shell.locale)
  const problems = problemsOf(say, error)
  const isEdited = mayEdit(shell, page)
  const setUp =
    making &&
    form(
      shell,
      html`<p>${say('enrolTotpScan')}</p>
<svg class="qr" role="img" aria-label="${say('enrolTotpPicture')}" viewBox="0 0 ${making.picture.size} ${making.picture.size}" shape-rendering="crispEdges"><path d="${making.picture.path}" transform="translate(0 .5)" stroke="#000"/></svg>
<p class="small">${say('enrolTotpSecret')}</p>
<p class="secret"><code>${making.secret.replace(/(.{4})(?=.)/g, '$1 ')}</code></p>
<p class="small"><a href="${making.uri}">${say('enrolTotpOpen')}</a></p>
<input type="hidden" name="secret" value="${making.secret}">
${codeField({ label: say('enrolTotpConfirm'), problems })}
<p class="actions"><button name="choice" value="verify">${say('continueOn')}</button></p>`,
    )
  return accountPage(shell, {
    lead: say('accountAuthenticatorText'),
    problems,
    content: html`${!isEdited && instead(say, shell, page)}
${
  authenticator &&
  html`<div class="entries"><div class="entry"><h2>${say('factorTotp')}</h2>
${used(say, shell, authenticator)}
${
  isEdited &&
  buttonForm(shell, {
    choice: 'remove',
    fields: { id: authenticator.id },
    text: say('accountRemove'),
    look: 'danger',
  })
}</div></div>`
}
${!authenticator && !isEdited && html`<p class="small">${say('accountAuthenticatorNone')}</p>`}
${!authenticator && isEdited && (setUp ?? buttonForm(shell, { choice: 'new', text: say('accountAuthenticatorAdd'), look: 'main' }))}`,
  })
}

export interface BackupCodesPage extends FactorPage {
  /** Undefined: there are none. */
  left: number | undefined
  /** These are new, and shown once. */
  codes?: readonly string[] | undefined
}

export const backupCodesPage = (shell: AccountShell, page: BackupCodesPage): Page => {
  const { left, codes, error } = page
  const say = sayIn(shell.locale)
  const problems = problemsOf(say, error)
  const isEdited = mayEdit(shell, page)
  if (codes && isEdited) {
    return accountPage(shell, {
      title: say('enrolBackup'),
      lead: say('enrolBackupText'),
      content: html`<ol class="codes">${codes.map((code) => html`<li><code>${code}</code></li>\n`)}</ol>
${buttonForm(shell, { choice: 'keep', text: say('enrolBackupKept'), look: 'main' })}`,
    })
  }
  return accountPage(shell, {
    lead: say('accountBackupText'),
    problems,
    content: html`<p class="label">${left === undefined ? say('accountBackupNone') : say('accountBackupLeft', { count: String(left) })}</p>
${isEdited ? buttonForm(shell, { choice: 'new', text: say('accountBackupMake'), look: 'main' }) : instead(say, shell, page)}`,
  })
}
