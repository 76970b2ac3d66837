import { type CaptchaField, captchaField } from './captcha.ts'
import type { PageClient } from './client.ts'
import { codeField, factorButtons, type PageFactor } from './factors.ts'
import { foreignName } from './foreign-text.ts'
import { errorSummary, field, formOf, type Problem } from './form.ts'
import { type Html, html } from './html.ts'
import type { Locale } from './locale.ts'
import type { MessageKey } from './messages/translation.ts'
import { type Page, page } from './page.ts'
import { passkeyForm, passkeyScriptSource } from './passkey-form.ts'
import { type Say, sayIn } from './say.ts'
import { type FactorError, factorProblem } from './second-factor.ts'

export type EnrolError =
  | FactorError
  | 'secret_new'
  | 'codes_new'
  | 'address_missing'
  | 'address_invalid'
  | 'address_taken'
  | 'captcha_failed'
  | 'captcha_unavailable'

/** What is being set up, and what its page needs. */
export type NewFactor =
  | { kind: 'choice'; factors: readonly PageFactor[] }
  | { kind: 'totp'; proofId: string; secret: string; uri: string; picture: QrPicture }
  | { kind: 'passkey'; proofId: string; options: object }
  /** `sentTo`: where a code waits for, in full: it was typed here. */
  | { kind: 'email_code' | 'phone_code'; entered: string; sentTo: string | undefined }
  | { kind: 'backup_code'; proofId: string; codes: readonly string[] }

/** A square of `size` modules; `path` draws the dark ones as lines along their tops. */
export interface QrPicture {
  size: number
  path: string
}

export interface EnrolPage {
  locale: Locale
  client: PageClient
  action: string
  csrf: string
  /** The rules ask for it. */
  isRequired: boolean
  isSkippable: boolean
  /** There is a choice to go back to. */
  hasChoice: boolean
  setUp: NewFactor
  /** The test for machines, where one is due before a text message. */
  captcha?: CaptchaField | undefined
  error?: EnrolError | undefined
}

/** One factor at a time: chosen, then set up. */
export const enrolPage = (options: EnrolPage): Page => {
  const { locale, client, setUp, error } = options
  const say = sayIn(locale)
  const problems = error === undefined ? [] : [enrolProblem(say, error)]
  const [title, lead] = headings[setUp.kind]
  return page({
    name: 'enrol',
    locale,
    client,
    title: say(title),
    form: 'leaving',
    isError: problems.length > 0,
    ...(setUp.kind === 'passkey' ? { scriptSource: passkeyScriptSource } : testOf(say, options)?.allowed),
    body: html`
<h1>${say(title)}</h1>
<p class="lead">${setUp.kind === 'choice' ? say(options.isRequired ? 'enrolRequired' : 'enrolSuggested') : say(lead)}</p>
${errorSummary(say, problems)}
${parts[setUp.kind](say, options, problems, setUp as never)}
${setUp.kind !== 'choice' && aside(say, options)}`,
  })
}

/** Stands on the form that asks for a number. */
const testOf = (say: Say, { captcha, setUp }: EnrolPage) =>
  captcha && setUp.kind === 'phone_code' && setUp.sentTo === undefined
    ? captchaField(say, captcha, 'captchaWithoutScriptByMail')
    : undefined

const headings: Readonly<Record<NewFactor['kind'], readonly [title: MessageKey & `enrol${string}`, lead: Lead]>> = {
  choice: ['enrolHeading', 'enrolSuggested'],
  totp: ['enrolTotp', 'enrolTotpText'],
  passkey: ['enrolPasskey', 'enrolPasskeyText'],
  email_code: ['enrolEmail', 'enrolEmailText'],
  phone_code: ['enrolPhone', 'enrolPhoneText'],
  backup_code: ['enrolBackup', 'enrolBackupText'],
}
type Lead = 'enrolSuggested' | `enrol${'Totp' | 'Passkey' | 'Email' | 'Phone' | 'Backup'}Text`

const skip = (say: Say, { isSkippable }: Pick<EnrolPage, 'isSkippable'>) =>
  isSkippable && html`<button class="quiet" name="choice" value="skip">${say('enrolSkip')}</button>`

/** Without it there would be no way on but forwards. */
const cancel = (say: Say, { isSkippable }: Pick<EnrolPage, 'isSkippable'>) =>
  !isSkippable && html`<button class="quiet" name="choice" value="cancel">${say('cancel')}</button>`

const aside = (say: Say, options: EnrolPage): Html | undefined => {
  const { hasChoice, isSkippable, setUp } = options
  // Whoever leaves now has codes that nothing accepts.
  if (setUp.kind === 'backup_code') return undefined
  return formOf(
    options,
    html`<p class="actions">${
      hasChoice && html`<button class="quiet" name="choice" value="back">${say('enrolBack')}</button>`
    }${isSkippable ? skip(say, options) : cancel(say, options)}</p>`,
  )
}

const hints: Partial<Record<PageFactor, MessageKey & `enrolHint${string}`>> = {
  passkey: 'enrolHintPasskey',
  totp: 'enrolHintTotp',
  email_code: 'enrolHintEmail',
  phone_code: 'enrolHintPhone',
}

type Part<Kind> = (
  say: Say,
  options: EnrolPage,
  problems: readonly Problem[],
  setUp: Extract<NewFactor, { kind: Kind }>,
) => Html

const address = (
  say: Say,
  options: EnrolPage,
  problems: readonly Problem[],
  { kind, entered, sentTo }: Extract<NewFactor, { entered: string }>,
): Html => {
  const isMail = kind === 'email_code'
  const kindInput = html`<input type="hidden" name="kind" value="${kind}">`
  if (sentTo !== undefined) {
    return formOf(
      options,
      html`${kindInput}
${codeField({
  label: say('factorCode'),
  hint: say('factorSent', { address: html`<b>${foreignName(sentTo, 100)}</b>` }),
  problems,
})}
<p class="actions">
<button name="choice" value="verify">${say('continueOn')}</button>
<button class="quiet" name="choice" value="address">${say(isMail ? 'enrolOtherEmail' : 'enrolOtherPhone')}</button>
</p>`,
    )
  }
  return formOf(
    options,
    html`${kindInput}
${field({
  id: 'address',
  label: say(isMail ? 'enrolEmailLabel' : 'enrolPhoneLabel'),
  hint: isMail ? undefined : say('enrolPhoneHint'),
  problems,
  input: (attributes) =>
    isMail
      ? html`<input id="address" name="address" type="email" autocomplete="email" autocapitalize="none" spellcheck="false"
 value="${entered}" maxlength="256"${attributes}${problems.length === 0 && html` autofocus`}>`
      : html`<input id="address" name="address" type="tel" autocomplete="tel" value="${entered}" maxlength="32"${
          attributes
        }${problems.length === 0 && html` autofocus`}>`,
})}
${testOf(say, options)?.field}
<p class="actions"><button name="choice" value="send">${say('factorSend')}</button></p>`,
  )
}

const parts: { [Kind in NewFactor['kind']]: Part<Kind> } = {
  choice: (say, options, _problems, { factors }) =>
    formOf(
      options,
      html`${factorButtons(say, factors, (factor) => hints[factor] && say(hints[factor]))}
${factors.every((factor) => factor === 'passkey') && html`<noscript><p class="message">${say('factorPasskeyWithoutScript')}</p></noscript>`}
<p class="actions">${skip(say, options)}${cancel(say, options)}</p>`,
    ),

  totp: (say, options, problems, { proofId, secret, uri, picture: { size, path } }) =>
    formOf(
      options,
      html`<input type="hidden" name="kind" value="totp">
<input type="hidden" name="proofId" value="${proofId}">
<p>${say('enrolTotpScan')}</p>
<svg class="qr" viewBox="0 0 ${size} ${size}" role="img" aria-label="${say('enrolTotpPicture')}" shape-rendering="crispEdges"><path d="${path}" transform="translate(0 .5)" stroke="#000"/></svg>
<p class="small">${say('enrolTotpSecret')}</p>
<p class="secret"><code>${inGroups(secret)}</code></p>
<p class="small"><a href="${uri}">${say('enrolTotpOpen')}</a></p>
${codeField({ label: say('enrolTotpConfirm'), problems })}
<p class="actions"><button name="choice" value="verify">${say('continueOn')}</button></p>`,
    ),

  passkey: (say, { action, csrf }, _problems, { proofId, options }) => html`<noscript><p class="message">${say(
    'factorPasskeyWithoutScript',
  )}</p></noscript>
${passkeyForm({
  ...{ action, csrf, proofId, options },
  kind: 'create',
  isSecond: true,
  label: say('enrolPasskeyMake'),
  failed: say('factorPasskeyFailed'),
})}`,

  email_code: address,
  phone_code: address,

  backup_code: (say, options, _problems, { proofId, codes }) => html`<ol class="codes">${codes.map(
    (code) => html`<li><code>${code}</code></li>
`,
  )}</ol>
${formOf(
  options,
  html`<input type="hidden" name="kind" value="backup_code">
<input type="hidden" name="proofId" value="${proofId}">
<p class="actions"><button name="choice" value="kept">${say('enrolBackupKept')}</button></p>`,
)}`,
}

/** Four at a time, so that it can be typed. */
const inGroups = (secret: string): string => secret.replace(/(.{4})(?=.)/g, '$1 ')

const messages = {
  secret_new: ['enrolTotpSecretNew', undefined],
  codes_new: ['enrolBackupNew', undefined],
  address_missing: ['enrolAddressMissing', 'address'],
  address_invalid: ['enrolAddressInvalid', 'address'],
  address_taken: ['enrolAddressTaken', 'address'],
  captcha_failed: ['captchaFailed', undefined],
  captcha_unavailable: ['unavailableText', undefined],
} as const satisfies Partial<Record<EnrolError, readonly [message: MessageKey, field: string | undefined]>>

const enrolProblem = (say: Say, error: EnrolError): Problem => {
  if (!(error in messages)) return factorProblem(say, error as FactorError)
  const [message, field] = messages[error as keyof typeof messages]
  return { message: say(message), field }
}
