import type { PageClient } from './client.ts'
import { foreignName, foreignValue } from './foreign-text.ts'
import { type Html, html } from './html.ts'
import type { Locale } from './locale.ts'
import type { MessageKey } from './messages/translation.ts'
import { type Page, page } from './page.ts'
import { type Say, sayIn } from './say.ts'
import { sign } from './sign.ts'
import { wayOnLink } from './way-on.ts'

/** What it says, and what to do about it. Texts without names only. */
const problems = {
  invalid_request: ['invalidRequest', 'invalidRequestText'],
  invalid_client: ['invalidClient', 'invalidClientText'],
  unauthorized_client: ['unauthorizedClient', 'unauthorizedClientText'],
  /** Of a pushed or stored request: unknown, used or too old. */
  invalid_request_uri: ['expired', 'invalidRequestText'],
  invalid_redirect_uri: ['invalidRedirectUri', 'invalidRedirectUriText'],
  invalid_post_logout_redirect_uri: ['invalidRedirectUri', 'invalidLogoutUriText'],
  /** The hint of a logout is not ours, or somebody else's. */
  invalid_id_token_hint: ['invalidLogout', 'invalidLogoutText'],
  /** The interaction is over its time. */
  expired: ['expired', 'expiredText'],
  /** The interaction belongs to another browser cookie, or there is none. */
  other_browser: ['otherBrowser', 'otherBrowserText'],
  /** The CSRF value is wrong, or the form came from elsewhere. */
  invalid_form: ['invalidForm', 'invalidFormText'],
  /** `/sign-in` without an interaction. */
  no_sign_in: ['noSignIn', 'noSignInText'],
  not_found: ['notFound', 'notFoundText'],
  too_many_requests: ['tooManySignIns', 'tooManyRequestsForNow'],
  /** Suspended, deleted or changed since the request. */
  application_unavailable: ['applicationUnavailable', 'applicationUnavailableText'],
  access_denied: ['accessDenied', 'accessDeniedText'],
  user_suspended: ['userSuspended', 'userSuspendedText'],
  /** Of second factors: the interaction has ended. */
  factor_locked: ['factorLocked', 'factorLockedText'],
  server_error: ['serverError', 'serverErrorText'],
  temporarily_unavailable: ['unavailable', 'unavailableText'],
} as const satisfies Record<string, readonly [heading: MessageKey, text: MessageKey]>

export type PageProblem = keyof typeof problems

export interface ErrorPage {
  locale: Locale
  problem: PageProblem
  /** For whoever asks for help. */
  requestId: string
  client?: PageClient | undefined
  /** What was refused, for whoever has to put it right. Never a link. */
  value?: string | undefined
  wayOn?: { href: string; kind: 'start_again' | 'application' } | undefined
}

/** For what cannot be told to the application by a redirect. */
export const errorPage = ({ locale, problem, requestId, client, value, wayOn }: ErrorPage): Page => {
  const say = sayIn(locale)
  const [heading, text] = problems[problem]
  return page({
    locale,
    name: 'error',
    title: say(heading),
    client,
    form: 'none',
    isError: true,
    body: html`
${sign('bad')}
<h1>${say(heading)}</h1>
<p class="lead">${say(text)}</p>
${wayOnLink(wayOn?.href, wayOnText(say, wayOn?.kind, client))}
<dl>
${value !== undefined && html`<dt>${say('received')}</dt><dd>${foreignValue(value)}</dd>`}
<dt>${say('reference')}</dt><dd>${foreignValue(requestId)}</dd>
</dl>`,
  })
}

const wayOnText = (say: Say, kind: 'start_again' | 'application' | undefined, client: PageClient | undefined): Html => {
  if (kind === 'start_again') return say('startAgain')
  return client ? say('backTo', { application: foreignName(client.name) }) : say('backToApplication')
}
