import { sha256 } from '../../platform/secret.ts'
import { html } from './html.ts'
import type { Locale } from './locale.ts'
import { type Page, page } from './page.ts'
import { sayIn } from './say.ts'

// A field may be called `submit`, so the form's own function is not safe to call.
const script = 'HTMLFormElement.prototype.submit.call(document.forms[0])'
const scriptSource = `'sha256-${sha256(script).toString('base64')}'`

export interface FormPostPage {
  locale?: Locale | undefined
  /** The redirect URI. */
  action: string
  fields: Readonly<Record<string, string>>
}

/** OAuth 2.0 Form Post Response Mode §2. Without JavaScript there is a button. */
export const formPostPage = ({ locale = 'en', action, fields }: FormPostPage): Page => {
  const say = sayIn(locale)
  return page({
    locale,
    title: say('formPost'),
    form: 'leaving',
    referrerPolicy: 'no-referrer',
    scriptSource,
    body: html`
<h1>${say('formPost')}</h1>
<form method="post" action="${action}">
${Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">\n`)}
<noscript><p>${say('formPostText')}</p><p class="actions"><button>${say('continueOn')}</button></p></noscript>
</form>
<script>${script}</script>`,
  })
}
