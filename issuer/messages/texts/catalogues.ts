import { de } from './de.ts'
import { en } from './en.ts'
import { es } from './es.ts'
import { fr } from './fr.ts'
import { ja } from './ja.ts'
import type { Texts } from './translation.ts'

const catalogues = { en, de, fr, es, ja } satisfies Record<string, Texts>

/** A language of messages (BCP 47). */
export type MessageLocale = keyof typeof catalogues

export interface Catalogue {
  locale: MessageLocale
  texts: Texts
}

const localeOf = (wanted: string): MessageLocale | undefined => {
  const [primary = ''] = wanted.toLowerCase().split(/[-_]/, 1)
  return Object.hasOwn(catalogues, primary) ? (primary as MessageLocale) : undefined
}

export const hasCatalogue = (wanted: string | undefined): boolean =>
  wanted !== undefined && localeOf(wanted) !== undefined

/** `de-AT` finds `de`; what is not there is English. */
export const catalogueOf = (wanted: string): Catalogue => {
  const locale = localeOf(wanted) ?? 'en'
  return { locale, texts: catalogues[locale] }
}
