import { type AddressName, shownAddress } from './address-words.ts'
import type { PageClient } from './client.ts'
import { foreignName, foreignValue } from './foreign-text.ts'
import { formOf } from './form.ts'
import { html } from './html.ts'
import type { Locale } from './locale.ts'
import type { MessageKey } from './messages/translation.ts'
import { type Page, page } from './page.ts'
import { sayIn } from './say.ts'
import { sign } from './sign.ts'
import { wayOnLink } from './way-on.ts'

/** Why somebody cannot go on. What operators' rules say is not told. */
const blocks = {
  user_suspended: ['userSuspended', 'userSuspendedText'],
  denied_by_rules: ['accessDenied', 'accessDeniedText'],
  /** A second factor is asked for, and none can be added. */
  factor_out_of_reach: ['factorOutOfReach', 'factorOutOfReachText'],
  registration_closed: ['registrationClosed', 'registrationClosedText'],
  sign_in_closed: ['signInClosed', 'signInClosedText'],
  /** No way to send a code. */
  reset_unavailable: ['resetUnavailable', 'resetUnavailableText'],
} as const satisfies Record<string, readonly [heading: MessageKey, text: MessageKey]>

export type Block = keyof typeof blocks
export const blockNames = Object.keys(blocks) as Block[]

export interface BlockedPage {
  locale: Locale
  client: PageClient
  action: string
  csrf: string
  reason: Block
  /** For whoever asks for help. */
  requestId: string
  /** The application. */
  wayOn?: string | undefined
  /** `another`: with another account. `back`: to signing in. */
  other: 'another' | 'back'
}

/** A page that leads no further by itself: with another account, or back. */
export const blockedPage = (options: BlockedPage): Page => {
  const { locale, client, reason, requestId, wayOn, other } = options
  const say = sayIn(locale)
  const [heading, text] = blocks[reason]
  return page({
    locale,
    name: 'blocked',
    client,
    title: say(heading),
    form: 'leaving',
    isError: true,
    body: html`
${sign('bad')}
<h1>${say(heading)}</h1>
<p class="lead">${say(text)}</p>
${formOf(options, html`<p class="actions"><button name="choice" value="${other}">${say(other === 'another' ? 'anotherAccount' : 'backToSignIn')}</button></p>`)}
${wayOnLink(wayOn, say('backTo', { application: foreignName(client.name) }), { isQuiet: true })}
<dl>
<dt>${say('reference')}</dt><dd>${foreignValue(requestId)}</dd>
</dl>`,
  })
}

export interface NoAccountPage {
  locale: Locale
  client: PageClient
  action: string
  csrf: string
  /** It was proven here. */
  type: AddressName
  address: string
}

/** For whoever signed in with a code, and has no account. */
export const noAccountPage = (options: NoAccountPage): Page => {
  const { locale, client, type } = options
  const say = sayIn(locale)
  const address = foreignName(shownAddress(options), 256)
  return page({
    locale,
    name: 'no_account',
    client,
    title: say('noAccount'),
    form: 'leaving',
    body: html`
<h1>${say('noAccount')}</h1>
<p class="lead">${say('noAccountText', { address })}</p>
${formOf(
  options,
  html`<p class="actions">
<button name="choice" value="begin_account">${say('createAccount')}</button>
<button class="quiet" name="choice" value="other">${say(type === 'email' ? 'otherEmail' : 'otherPhone')}</button>
</p>`,
)}`,
  })
}
