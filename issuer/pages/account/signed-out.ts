import { html } from '../html.ts'
import type { Locale } from '../locale.ts'
import { type Page, page } from '../page.ts'
import { sayIn } from '../say.ts'
import { wayOnLink } from '../way-on.ts'

/** For whoever gave up signing in, or, with a form in hand, has been signed out. */
export const accountSignedOutPage = ({
  locale,
  path,
  wasSignedIn,
}: {
  locale: Locale
  path: string
  wasSignedIn: boolean
}): Page => {
  const say = sayIn(locale)
  const title = say(wasSignedIn ? 'accountWasSignedOut' : 'accountNotSignedIn')
  return page({
    locale,
    name: 'account',
    title,
    form: 'none',
    body: html`
<h1>${title}</h1>
<p class="lead">${say(wasSignedIn ? 'accountWasSignedOutText' : 'accountNotSignedInText')}</p>
${wayOnLink(path, say('signIn'))}`,
  })
}
