import { clientHeader, type PageClient } from '../client.ts'
import { asDescribed, inWords, type PageScope, scopeList } from '../consent.ts'
import { foreignName } from '../foreign-text.ts'
import { type Html, html } from '../html.ts'
import type { Page } from '../page.ts'
import { type Say, sayIn } from '../say.ts'
import { namesIn } from './names.ts'
import { type AccountShell, accountPage, buttonForm, confirmFirst } from './shell.ts'
import { timeAgo } from './times.ts'

export interface ApplicationOnPage extends PageClient {
  id: string
  isThirdParty: boolean
  /** Of OpenID Connect and of organizations. */
  scopes: readonly PageScope[]
  resources: readonly { name: string; scopes: readonly PageScope[] }[]
  /** Names of those that it may act in. */
  organizations: readonly string[]
  /** It keeps its access while the person is signed out. */
  isOffline: boolean
  since: Date
}

/** What has access to the account, and what to. */
export const applicationsPage = (
  shell: AccountShell,
  { applications }: { applications: readonly ApplicationOnPage[] },
): Page => {
  const say = sayIn(shell.locale)
  return accountPage(shell, {
    lead: say('accountApplicationsText'),
    content:
      applications.length === 0
        ? html`<p class="small">${say('accountApplicationsEmpty')}</p>`
        : html`${confirmFirst(shell)}
<ul class="entries">
${applications.map((application) => entry(say, shell, application))}</ul>`,
  })
}

const entry = (say: Say, shell: AccountShell, application: ApplicationOnPage): Html => {
  const { id, name, isThirdParty, isOffline, since, scopes, resources, organizations } = application
  return html`<li class="entry">${clientHeader({ name })}
${isThirdParty && html`<p><span class="badge">${say('accountApplicationThirdParty')}</span></p>`}
<p>${say('accountApplicationSince', { time: timeAgo(shell, since) })}</p>
${isOffline && html`<p>${say('accountApplicationOffline')}</p>`}
${scopeList(
  say('accountApplicationMay'),
  scopes.map((scope) => inWords(say, scope)),
)}${resources.map((resource) =>
  scopeList(say('accountApplicationMayIn', { resource: foreignName(resource.name) }), resource.scopes.map(asDescribed)),
)}
${organizations.length > 0 && html`<p>${say('accountApplicationOrganizations', { names: namesIn(shell.locale, organizations) })}</p>`}
${
  shell.confirmPath === undefined &&
  buttonForm(shell, {
    choice: 'end',
    fields: { id },
    text: say('accountApplicationEnd'),
    label: say('accountApplicationEndNamed', { name }),
  })
}</li>
`
}
