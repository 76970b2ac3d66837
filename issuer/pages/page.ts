import { accountStylesheet, icon, stylesheet } from './assets.ts'
import type { Branding, Pictures } from './branding.ts'
import { clientHeader, logoOf, type PageClient, pictureOrigin } from './client.ts'
import { foreignName, foreignNameInTitle, tidy } from './foreign-text.ts'
import { type Html, type HtmlValue, html, render } from './html.ts'
import { directions, type Locale } from './locale.ts'
import { sayIn } from './say.ts'

/** Of those that operators may add a text to. */
export type PageName =
  | 'sign_in'
  | 'register'
  | 'reset'
  | 'profile'
  | 'code'
  | 'mfa'
  | 'enrol'
  | 'passkey'
  | 'terms'
  | 'captcha'
  | 'select_account'
  | 'consent'
  | 'device'
  | 'blocked'
  | 'no_account'
  | 'error'
  | 'logout'
  | 'signed_out'
  | 'finished'
  | 'account'

/** A whole page. `sendPage` sends it. */
export interface Page {
  readonly content: string
  /** Those that depend on what is on the page. */
  readonly headers: Readonly<Record<'Content-Security-Policy' | 'Referrer-Policy', string>>
  /** The same page with what an operator puts on it. */
  branded(branding: Branding): Page
}

/**
 * What `form-action` says (CSP §6.4.1). Chromium applies it to every redirect after a POST, so a form whose step may
 * lead back to the application must do without.
 */
const formActions = { none: "form-action 'none'", own: "form-action 'self'", leaving: undefined } as const

export interface PageParts {
  locale: Locale
  /** What operators call it in `customContent`. */
  name?: PageName | undefined
  /** What the page is for, without the application's name. */
  title: Html
  /** It is on top, its name in the title. Without one the title names whose pages these are. */
  client?: PageClient | undefined
  /** Programs look for the plain title of the logout pages. */
  namesClientInTitle?: false | undefined
  body: Html
  /** What stands beside the page in a wide window: where else one can go in the account. */
  beside?: Html | undefined
  /** `own`: there is one. `leaving`: and the step after it may leave this host. */
  form: keyof typeof formActions
  isError?: boolean | undefined
  /** Where the one script of a page may come from, as CSP says it: `'sha256-…'` of an inline one. */
  scriptSource?: string | undefined
  /** Of people, by `pictureOrigin`: from where they may be loaded. */
  pictures?: readonly string[] | undefined
  /** Whose frames a page may hold: an origin. */
  frameSource?: string | undefined
  /** Who posts a form to somebody else tells nobody where from. */
  referrerPolicy?: 'no-referrer' | undefined
}

export const page = (parts: PageParts, branding?: Branding): Page => ({
  // Only when it is read: most pages are sent with a branding.
  get content() {
    return render(document(parts, branding))
  },
  get headers() {
    return {
      'Content-Security-Policy': contentSecurityPolicy(parts, branding),
      // Under `no-referrer` Chromium sends `Origin: null` with our own forms.
      'Referrer-Policy': parts.referrerPolicy ?? (parts.form === 'none' ? 'no-referrer' : 'same-origin'),
    } as const
  },
  branded: (another) => page(parts, another),
})

const contentSecurityPolicy = (
  { client, form, scriptSource, frameSource, pictures: shown = [] }: PageParts,
  branding: Branding | undefined,
): string => {
  const pictures = [
    logoOf(client)?.url,
    ...shown,
    ...[branding?.logo, branding?.favicon].flatMap((both) => both && [both.light, both.dark]),
  ]
  const origins = new Set(pictures.flatMap((url) => pictureOrigin(url) ?? []))
  return [
    "default-src 'none'",
    "style-src 'self'",
    ["img-src 'self'", ...origins].join(' '),
    `script-src ${scriptSource ?? "'none'"}`,
    frameSource && `frame-src ${frameSource}`,
    "base-uri 'none'",
    formActions[form],
    "frame-ancestors 'none'",
  ]
    .filter((directive) => directive !== undefined)
    .join('; ')
}

const document = (parts: PageParts, branding: Branding | undefined): Html => {
  const { locale, title, client, namesClientInTitle, isError, beside } = parts
  const owner = client?.name ?? branding?.name
  return html`<!doctype html>
<html lang="${locale}" dir="${directions[locale]}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="${branding?.hasDarkTheme === false ? 'light' : 'light dark'}">
<title>${isError && html`${sayIn(locale)('errorPrefix')} `}${title}${
    owner !== undefined && namesClientInTitle !== false && ` · ${foreignNameInTitle(owner)}`
  }</title>
<link rel="stylesheet" href="${stylesheet.path}">
${beside && html`<link rel="stylesheet" href="${accountStylesheet.path}">\n`}${branding?.stylesheet && html`<link rel="stylesheet" href="${branding.stylesheet.href}">\n`}${faviconLinks(branding)}
</head>
<body>
${beside ? html`<div class="frame">${beside}${mainOf(parts, branding)}</div>` : mainOf(parts, branding)}
${noteOf(parts, branding)}
<footer>${footerOf(locale, branding)}</footer>
</body>
</html>
`
}

const mainOf = ({ client, body, beside }: PageParts, branding: Branding | undefined): Html => html`<main${
  beside && html` id="content"`
}>
${branding?.logo && brandLogo(branding.logo, branding.name)}
${client && clientHeader(client)}
${body}
</main>`

const faviconLinks = (branding: Branding | undefined): Html => {
  const favicon = branding?.favicon
  if (favicon === undefined) return html`<link rel="icon" href="${icon.path}">`
  return html`<link rel="icon" href="${favicon.light}" media="(prefers-color-scheme: light)">
<link rel="icon" href="${favicon.dark}" media="(prefers-color-scheme: dark)">`
}

const brandLogo = ({ light, dark }: Pictures, name: string | undefined): Html =>
  html`<picture class="brand"><source srcset="${dark}" media="(prefers-color-scheme: dark)"><img src="${light}" alt="${
    name === undefined ? '' : tidy(name, 60)
  }"></picture>`

/** For this page or for all, in this language or in every. */
const noteOf = ({ locale, name }: PageParts, branding: Branding | undefined): Html | undefined => {
  const places = [...(name === undefined ? [] : [`${name}.note`]), 'note']
  const found = places
    .flatMap((place) => [`${place}.${locale}`, place])
    .map((place) => branding?.texts[place])
    .find((text) => text !== undefined && text !== '')
  return found === undefined ? undefined : html`<p class="note"><bdi>${tidy(found, 1_000)}</bdi></p>`
}

const ours = html`<img src="${icon.path}" alt="" width="16" height="16">Surrogate`

const footerOf = (locale: Locale, branding: Branding | undefined): HtmlValue => {
  if (branding === undefined) return ours
  const say = sayIn(locale)
  const { name, hidesOurs, termsOfUseUrl, privacyPolicyUrl, support } = branding
  const link = (href: string | undefined, text: Html) =>
    href !== undefined && html`<a href="${href}" rel="noopener noreferrer" target="_blank">${text}</a>`
  return [
    name === undefined ? !hidesOurs && ours : foreignName(name),
    link(termsOfUseUrl, say('terms')),
    link(privacyPolicyUrl, say('privacy')),
    link(support, say('support')),
  ]
}
