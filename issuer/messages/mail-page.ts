import { escapeHtml } from '../base/escape-html.ts'

/** What is on a mail beside its words. */
export interface MailLook {
  /** Of whoever it is from. */
  name?: string | undefined
  /** The https address of a picture, in place of the name. */
  logo?: string | undefined
  /** As `#rrggbb`, readable on white. */
  color: string
  /** Readable on black; undefined: it is light in the dark too. */
  darkColor?: string | undefined
}

export const plainLook: MailLook = { color: '#3b4fd6', darkColor: '#95a3ff' }

/** The names that `dark` knows what to do with; inline styles are for readers that know no others. */
const dark = (color: string) => `@media (prefers-color-scheme:dark){
.page{background:#0d0f15!important}
.card{background:#171a23!important;color:#eceef4!important;border-color:${color}!important}
.main{color:${color}!important}}`

// A logo may be made for white: it stands on white in the dark too.
const brandOf = ({ name, logo, color }: MailLook): string => {
  const escaped = escapeHtml(name ?? '')
  if (logo !== undefined)
    return `<p style="margin:0 0 24px"><img src="${escapeHtml(logo)}" alt="${escaped}" height="40" style="display:inline-block;height:40px;max-width:100%;padding:4px;border-radius:6px;background:#fff;color:#151823"></p>`
  return name === undefined
    ? ''
    : `<p class="main" style="margin:0 0 24px;font-size:18px;font-weight:bold;color:${color}">${escaped}</p>`
}

/** The paragraphs of a mail, as HTML, on a page of their own. Nothing is loaded but the logo, if there is one. */
export const mailPage = (locale: string, subject: string, paragraphs: readonly string[], look: MailLook): string => {
  const { color, darkColor } = look
  const schemes = darkColor === undefined ? 'light' : 'light dark'
  return `<!doctype html><html lang="${locale}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="${schemes}"><title>${escapeHtml(subject)}</title><style>:root{color-scheme:${schemes}}
${darkColor === undefined ? '' : dark(darkColor)}</style></head><body class="page" style="margin:0;padding:24px 12px;background:#f4f5f8"><main class="card" style="box-sizing:border-box;max-width:32em;margin:0 auto;padding:28px 24px 12px;border-top:4px solid ${color};border-radius:8px;background:#fff;color:#151823;font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere">${brandOf(look)}${paragraphs
    .map((paragraph) => `<p style="margin:0 0 16px">${paragraph}</p>`)
    .join('')}</main></body></html>`
}

/** A code can be copied with one touch; a link can be followed. */
export const marked = (name: string, value: string, { color }: MailLook): string => {
  const escaped = escapeHtml(value)
  if (name === 'code')
    return `<strong class="main" style="font-size:1.25em;letter-spacing:.1em;color:${color}">${escaped}</strong>`
  return name === 'link' ? `<a class="main" style="color:${color}" href="${escaped}">${escaped}</a>` : escaped
}
