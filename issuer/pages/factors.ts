import { type FieldOptions, field } from './form.ts'
import { type Html, html } from './html.ts'
import type { MessageKey } from './messages/translation.ts'
import type { Say } from './say.ts'

/** A second factor by the kind of its proof. */
export type PageFactor = 'passkey' | 'totp' | 'phone_code' | 'email_code' | 'backup_code'

const names = {
  passkey: 'factorPasskey',
  totp: 'factorTotp',
  phone_code: 'factorPhone',
  email_code: 'factorEmail',
  backup_code: 'factorBackup',
} as const satisfies Record<PageFactor, MessageKey>

/** Its name, for a button. */
export const factorName = (say: Say, factor: PageFactor): Html => say(names[factor])

/** Buttons, each for one factor. Those that need a script are not there without. */
export const factorButtons = (
  say: Say,
  factors: readonly PageFactor[],
  hintOf?: (factor: PageFactor) => Html | undefined,
): Html =>
  html`<p class="factors">${factors.map(
    (
      factor,
    ) => html`<button class="quiet${factor === 'passkey' && ' scripted'}" name="factor" value="${factor}"><b>${factorName(
      say,
      factor,
    )}</b>${hintOf?.(factor) && html`<span>${hintOf(factor)}</span>`}</button>
`,
  )}</p>`

/** For six digits that somebody reads elsewhere; telephones offer what came by text message. */
export const codeField = (options: Omit<FieldOptions, 'input' | 'id'>): Html =>
  field({
    ...options,
    id: 'code',
    input: (described) => html`<input id="code" class="code" name="code" type="text" inputmode="numeric" maxlength="16"
 autocomplete="one-time-code" autocapitalize="none" autocorrect="off" spellcheck="false"${described}${
   options.problems.length === 0 && html` autofocus`
 }>`,
  })
