import { accountCard, type PageAccount } from './account.ts'
import type { PageClient } from './client.ts'
import { foreignName, foreignSentence, foreignValue } from './foreign-text.ts'
import { type Html, html } from './html.ts'
import type { Locale } from './locale.ts'
import type { MessageKey } from './messages/translation.ts'
import { type Page, page } from './page.ts'
import { durationIn, type Say, sayIn } from './say.ts'

export interface PageScope {
  name: string
  description?: string | undefined
}

export interface ConsentPage {
  locale: Locale
  client: PageClient
  action: string
  csrf: string
  account: PageAccount
  /** Those of OpenID Connect and of organizations. */
  scopes: readonly PageScope[]
  resources: readonly { name: string; scopes: readonly PageScope[] }[]
  /** Those that the person may choose from. */
  organizations: readonly { id: string; name: string }[]
  /** The host, or the scheme, of the redirect URI. */
  redirectHost: string
  /** A device asks (RFC 8628), and nothing leads back to it. */
  device?: AskingDevice | undefined
}

export interface AskingDevice {
  /** What is allowed counts for this device alone. */
  isOurs: boolean
  address: string
  minutesAgo: number
}

/** Who asks for what, on whose behalf, and where the answer goes (RFC 6819 §5.2.4.1, RFC 8252 §8.6). */
export const consentPage = (options: ConsentPage): Page => {
  const { locale, client, action, csrf, account, scopes, resources, organizations, redirectHost, device } = options
  const say = sayIn(locale)
  return page({
    locale,
    name: 'consent',
    client,
    title: say(device ? 'deviceTitle' : 'consentTitle'),
    form: 'leaving',
    body: html`
${device ? deviceWarning(say, locale, client, device) : html`<h1>${say('consentHeading', { application: foreignName(client.name) })}</h1>`}
<form method="post" action="${action}">
<input type="hidden" name="csrf" value="${csrf}">
<p class="label">${say('signedInAs')}</p>
${accountCard(account, html`<button class="link" name="choice" value="another">${say('notYou')}</button>`)}
</form>
<form method="post" action="${action}">
<input type="hidden" name="csrf" value="${csrf}">
${scopeList(
  say('consentScopes'),
  scopes.map((scope) => inWords(say, scope)),
)}
${resources.map((resource) =>
  scopeList(say('consentResource', { resource: foreignName(resource.name) }), resource.scopes.map(asDescribed)),
)}
${organizations.length > 0 && organizationChoice(say, organizations)}
<p class="actions pair">
<button name="choice" value="allow">${say(device ? 'deviceAllow' : 'allow')}</button>
<button class="quiet" name="choice" value="deny">${say(device ? 'deviceDeny' : 'deny')}</button>
</p>
${!device?.isOurs && html`<p class="small">${!device && html`${say('consentRedirect', { host: html`<b>${foreignName(redirectHost, hostLength)}</b>` })} `}${say('consentDuration')}</p>`}
</form>`,
  })
}

/** RFC 8628 §5.4: somebody may have been talked into entering the code of a stranger's device. */
const deviceWarning = (
  say: Say,
  locale: Locale,
  { name }: PageClient,
  { address, minutesAgo }: AskingDevice,
): Html => html`<h1>${say('deviceHeading', { application: foreignName(name) })}</h1>
<p class="lead">${say('deviceAskedFrom', {
  address: foreignValue(address, 64),
  duration: durationIn(locale, minutesAgo),
})}</p>
<div class="warning" role="note"><p>${say('deviceWarning', { application: foreignName(name) })}</p></div>`

// All of it: who sees only how a host begins does not know whose it is (RFC 1035 §2.3.4).
const hostLength = 255

/** Those of the protocol; for all others the operator's words stand. */
const words: ReadonlyMap<string, MessageKey & `scope${string}`> = new Map([
  ['openid', 'scopeOpenid'],
  ['profile', 'scopeProfile'],
  ['email', 'scopeEmail'],
  ['phone', 'scopePhone'],
  ['address', 'scopeAddress'],
  ['offline_access', 'scopeOfflineAccess'],
  ['roles', 'scopeRoles'],
  ['urn:logto:scope:organizations', 'scopeOrganizations'],
  ['urn:logto:scope:organization_roles', 'scopeOrganizationRoles'],
  ['custom_data', 'scopeCustomData'],
  ['identities', 'scopeIdentities'],
] as const)

export const inWords = (say: Say, scope: PageScope): Html => {
  const key = words.get(scope.name)
  return key === undefined ? asDescribed(scope) : say(key)
}

export const asDescribed = ({ name, description = '' }: PageScope): Html =>
  description.trim() === '' ? foreignValue(name, 100) : foreignSentence(description)

export const scopeList = (heading: Html, items: readonly Html[]): Html | undefined =>
  items.length === 0
    ? undefined
    : html`<h2 class="label">${heading}</h2>
<ul class="scopes">${items.map((item) => html`<li>${item}</li>`)}</ul>`

const organizationChoice = (
  say: Say,
  organizations: ConsentPage['organizations'],
): Html => html`<fieldset aria-describedby="hint">
<legend class="label">${say('consentOrganizations')}</legend>
<p class="small" id="hint">${say('consentOrganizationsHint')}</p>
${organizations.map(
  ({ id, name }) =>
    html`<label class="choice"><input type="checkbox" name="organizationIds" value="${id}"><span>${foreignName(name)}</span></label>
`,
)}</fieldset>`
