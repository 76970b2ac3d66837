import { icon, stylesheet } from './assets.ts'
import { clientHeader, logoOf, type PageClient } from './client.ts'
import { foreignNameInTitle } from './foreign-text.ts'
import { type Html, html, render } from './html.ts'
import { directions, type Locale } from './locale.ts'
import { sayIn } from './say.ts'

/** A whole page. `sendPage` sends it. */
export interface Page {
  readonly content: string
  /** Those that depend on what is on the page. */
  readonly headers: Readonly<Record<'Content-Security-Policy' | 'Referrer-Policy', string>>
}

/**
 * What `form-action` says (CSP §6.4.1). Chromium applies it to every redirect after a POST, so a form whose step may
 * lead back to the application must do without.
 */
const formActions = { none: "form-action 'none'", leaving: undefined } as const

export interface PageParts {
  locale: Locale
  /** What the page is for, without the application's name. */
  title: Html
  /** It is on top, its name in the title. */
  client?: PageClient | undefined
  /** Programs look for the plain title of the logout pages. */
  namesClientInTitle?: false | undefined
  body: Html
  /** `leaving`: there is one, and the step after it may leave this host. */
  form: keyof typeof formActions
  isError?: boolean | undefined
  /** Where the one script of a page may come from, as CSP says it: `'sha256-…'` of an inline one. */
  scriptSource?: string | undefined
  /** Whose frames a page may hold: an origin. */
  frameSource?: string | undefined
  /** Who posts a form to somebody else tells nobody where from. */
  referrerPolicy?: 'no-referrer' | undefined
}

export const page = (parts: PageParts): Page => ({
  content: render(document(parts)),
  headers: {
    'Content-Security-Policy': contentSecurityPolicy(parts),
    // Under `no-referrer` Chromium sends `Origin: null` with our own forms.
    'Referrer-Policy': parts.referrerPolicy ?? (parts.form === 'none' ? 'no-referrer' : 'same-origin'),
  },
})

const contentSecurityPolicy = ({ client, form, scriptSource, frameSource }: PageParts): string => {
  const logo = logoOf(client)
  return [
    "default-src 'none'",
    "style-src 'self'",
    `img-src 'self'${logo ? ` ${logo.origin}` : ''}`,
    `script-src ${scriptSource ?? "'none'"}`,
    frameSource && `frame-src ${frameSource}`,
    "base-uri 'none'",
    formActions[form],
    "frame-ancestors 'none'",
  ]
    .filter((directive) => directive !== undefined)
    .join('; ')
}

const document = ({ locale, title, client, namesClientInTitle, body, isError }: PageParts): Html => html`<!doctype html>
<html lang="${locale}" dir="${directions[locale]}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${isError && html`${sayIn(locale)('errorPrefix')} `}${title}${
  client && namesClientInTitle !== false && ` · ${foreignNameInTitle(client.name)}`
}</title>
<link rel="stylesheet" href="${stylesheet.path}">
<link rel="icon" href="${icon.path}">
</head>
<body>
<main>
${client && clientHeader(client)}
${body}
</main>
<footer><img src="${icon.path}" alt="" width="16" height="16">Surrogate</footer>
</body>
</html>
`
