import { foreignName } from '../foreign-text.ts'
import { type Html, html } from '../html.ts'
import type { Locale } from '../locale.ts'

/** Names that somebody else has chosen, as a list in words: `Shop, Wiki, and Mail`. */
export const namesIn = (locale: Locale, names: readonly string[]): Html =>
  html`${new Intl.ListFormat(locale, { type: 'conjunction' })
    .formatToParts(names.map((_, index) => String(index)))
    .map(({ type, value }) => (type === 'element' ? foreignName(names[Number(value)] ?? '') : value))}`
