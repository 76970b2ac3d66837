import type { PageClient } from './client.ts'
import { foreignName } from './foreign-text.ts'
import { html } from './html.ts'
import type { Locale } from './locale.ts'
import { type Page, page } from './page.ts'
import { sayIn } from './say.ts'
import { sign } from './sign.ts'
import { wayOnLink } from './way-on.ts'

export interface FinishedPage {
  locale: Locale
  client?: PageClient | undefined
  wayOn?: string | undefined
}

/** For whoever comes back to a sign-in that is complete. */
export const finishedPage = ({ locale, client, wayOn }: FinishedPage): Page => {
  const say = sayIn(locale)
  const onwards = client ? say('continueTo', { application: foreignName(client.name) }) : say('continueOn')
  return page({
    locale,
    name: 'finished',
    title: say('finished'),
    client,
    form: 'none',
    body: html`
${sign('good')}
<h1>${say('finished')}</h1>
<p class="lead">${say('finishedText')}</p>
${wayOnLink(wayOn, onwards) ?? html`<p class="lead">${say('mayClose')}</p>`}`,
  })
}
