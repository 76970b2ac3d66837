import type { Branding } from './branding.ts'
import type { Page } from './page.ts'
import { styles } from './styles.ts'
import type { ThemeName } from './theme.ts'

/**
 * A page that stands by itself, in a frame without an origin: its styles are in it, in one theme, and its policy lets
 * it load pictures only and send nothing.
 */
export const previewOf = (page: Page, branding: Branding, theme: ThemeName): string => {
  const css = inTheme(styles + (branding.stylesheet?.css ?? ''), theme)
  // Neither the styles nor what operators add can have `<` in them.
  const head = `<meta http-equiv="Content-Security-Policy" content="${policy}"><style>${css}</style>`
  return (
    page
      .branded(branding)
      .content.replaceAll(/<link rel="(?:stylesheet|icon)"[^>]*>\n?/g, '')
      // Where no script runs, nothing takes the focus.
      .replaceAll(/ autofocus(?=[ >])/g, '')
      .replace('<meta charset="utf-8">', (charset) => charset + head)
      .replaceAll('media="(prefers-color-scheme: dark)"', `media="${theme === 'dark' ? always : never}"`)
      .replace('content="light dark"', `content="${theme}"`)
  )
}

const policy =
  "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' https: http:; form-action 'none'; base-uri 'none'"

/** Conditions that stand well beside others. */
const always = '(min-width: 0px)'
const never = '(max-width: 0px)'

const inTheme = (css: string, theme: ThemeName): string =>
  css
    .replaceAll(/\(prefers-color-scheme: ?dark\)/g, theme === 'dark' ? always : never)
    .replaceAll(/\(prefers-color-scheme: ?light\)/g, theme === 'light' ? always : never)
    .replace('color-scheme:light dark', `color-scheme:${theme}`)
