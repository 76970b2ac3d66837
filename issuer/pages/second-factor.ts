import { accountCard, type PageAccount } from './account.ts'
import type { PageClient } from './client.ts'
import { codeField, factorButtons, type PageFactor } from './factors.ts'
import { foreignName } from './foreign-text.ts'
import { errorSummary, field, formOf, type Problem } from './form.ts'
import { type Html, html } from './html.ts'
import type { Locale } from './locale.ts'
import { maskedAddress } from './masked-address.ts'
import type { MessageKey } from './messages/translation.ts'
import { type Page, page } from './page.ts'
import { passkeyForm, passkeyScriptSource } from './passkey-form.ts'
import { type Say, sayIn } from './say.ts'

export type FactorError =
  | 'missing'
  | 'wrong'
  | 'too_many_requests'
  | 'code_too_soon'
  | 'code_limited'
  | 'code_unavailable'
  | 'passkey'

/** The factor that is asked for, and what its page needs. */
export type AskedFactor =
  | { kind: 'totp' | 'backup_code' }
  | { kind: 'email_code' | 'phone_code'; address: string; isSent: boolean }
  | { kind: 'passkey'; proofId: string; options: object }

export interface SecondFactorPage {
  locale: Locale
  client: PageClient
  action: string
  csrf: string
  account: PageAccount
  asked: AskedFactor
  /** The better first. */
  others: readonly PageFactor[]
  error?: FactorError | undefined
}

/** One factor at a time, and the others a click away. */
export const secondFactorPage = (options: SecondFactorPage): Page => {
  const { locale, client, action, csrf, account, asked, others, error } = options
  const say = sayIn(locale)
  const problems = error === undefined ? [] : [factorProblem(say, error)]
  return page({
    name: 'mfa',
    locale,
    client,
    title: say('reauthenticate'),
    form: 'leaving',
    isError: problems.length > 0,
    scriptSource: asked.kind === 'passkey' ? passkeyScriptSource : undefined,
    body: html`
<h1>${say('reauthenticate')}</h1>
${errorSummary(say, problems)}
<form class="whose" method="post" action="${action}">
<input type="hidden" name="csrf" value="${csrf}">
${accountCard(account, html`<button class="link" name="choice" value="another">${say('notYou')}</button>`)}
</form>
${asking[asked.kind](say, { action, csrf, problems }, asked as never)}
${others.length > 0 && otherWays(say, { action, csrf, problems }, others)}`,
  })
}

interface FormAround {
  action: string
  csrf: string
  problems: readonly Problem[]
}

const kindField = (kind: PageFactor) => html`<input type="hidden" name="kind" value="${kind}">`

const cancel = (say: Say) => html`<button class="quiet" name="choice" value="cancel">${say('cancel')}</button>`

const typed = (say: Say, around: FormAround, kind: PageFactor, field: Html, more?: Html): Html =>
  formOf(
    around,
    html`${kindField(kind)}
${field}
<p class="actions">
<button name="choice" value="verify">${say('continueOn')}</button>
${more}
${cancel(say)}
</p>`,
  )

const sending = (
  say: Say,
  around: FormAround,
  { kind, address, isSent }: Extract<AskedFactor, { address: string }>,
): Html => {
  const masked = html`<b>${foreignName(maskedAddress(address), 100)}</b>`
  if (!isSent) {
    return formOf(
      around,
      html`${kindField(kind)}
<p>${say('factorWillSend', { address: masked })}</p>
<p class="actions">
<button name="choice" value="send">${say('factorSend')}</button>
${cancel(say)}
</p>`,
    )
  }
  return typed(
    say,
    around,
    kind,
    codeField({ label: say('factorCode'), hint: say('factorSent', { address: masked }), problems: around.problems }),
    html`<button class="quiet" name="choice" value="send">${say('factorSendAgain')}</button>`,
  )
}

type Asking<Kind> = (say: Say, around: FormAround, asked: Extract<AskedFactor, { kind: Kind }>) => Html

const asking: { [Kind in PageFactor]: Asking<Kind> } = {
  totp: (say, around) =>
    typed(
      say,
      around,
      'totp',
      codeField({ label: say('factorTotpCode'), hint: say('factorTotpHint'), problems: around.problems }),
    ),
  backup_code: (say, around) =>
    typed(
      say,
      around,
      'backup_code',
      field({
        id: 'code',
        label: say('factorBackup'),
        hint: say('factorBackupHint'),
        problems: around.problems,
        input: (attributes) => html`<input class="code" id="code" name="code" type="text" autocomplete="off"
 autocapitalize="characters" autocorrect="off" spellcheck="false" maxlength="64"${attributes}${
   around.problems.length === 0 && html` autofocus`
 }>`,
      }),
    ),
  email_code: sending,
  phone_code: sending,
  passkey: (say, around, { proofId, options }) => html`<p>${say('factorPasskeyHint')}</p>
<noscript><p class="message">${say('factorPasskeyWithoutScript')}</p></noscript>
${passkeyForm({
  ...{ action: around.action, csrf: around.csrf, proofId, options },
  kind: 'get',
  isSecond: true,
  label: say('factorPasskeyUse'),
  failed: say('factorPasskeyFailed'),
})}
${formOf(around, html`<p class="actions">${cancel(say)}</p>`)}`,
}

const otherWays = (
  say: Say,
  around: FormAround,
  others: readonly PageFactor[],
): Html => html`<details><summary>${say('factorOther')}</summary>
${formOf(around, factorButtons(say, others))}
</details>`

const messages = {
  missing: ['factorCodeMissing', 'code'],
  wrong: ['factorCodeWrong', 'code'],
  too_many_requests: ['tooManyRequestsForNow', undefined],
  code_too_soon: ['codeTooSoon', undefined],
  code_limited: ['factorSendLimited', undefined],
  code_unavailable: ['factorSendUnavailable', undefined],
  passkey: ['factorPasskeyFailed', undefined],
} as const satisfies Record<FactorError, readonly [message: MessageKey, field: string | undefined]>

/** What went wrong with a factor, on the page where it is entered. */
export const factorProblem = (say: Say, error: FactorError): Problem => {
  const [message, field] = messages[error]
  return { message: say(message), field }
}
