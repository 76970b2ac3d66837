import { catalogues, type Locale } from './messages/catalogues.ts'

export type { Locale }

export const locales = Object.keys(catalogues) as readonly Locale[]

/** All that we have are written from left to right; a language that is not has its own row. */
export const directions: Readonly<Record<Locale, 'ltr' | 'rtl'>> = {
  en: 'ltr',
  de: 'ltr',
  fr: 'ltr',
  es: 'ltr',
  ja: 'ltr',
}

const fallback: Locale = 'en'

/** As the settings of signing in have it. */
export interface LanguageInfo {
  /** Whether the languages of the browser count. */
  autoDetect: boolean
  fallbackLanguage: string
}

/** What is longer names more languages than a person speaks. */
const maxRanges = 20

/**
 * The language of a page: what the client asks for (`ui_locales`), else what the browser does (`autoDetect`), else the
 * one of the settings, else English. Ranges are looked up as RFC 4647 §3.4 says: `de-AT` finds `de`.
 */
export const pickLocale = ({
  uiLocales = [],
  acceptLanguage = '',
  languageInfo: { autoDetect, fallbackLanguage } = { autoDetect: true, fallbackLanguage: fallback },
}: {
  uiLocales?: readonly string[] | undefined
  acceptLanguage?: string | undefined
  languageInfo?: LanguageInfo | undefined
}): Locale => {
  const ofBrowser = autoDetect ? rangesOf(acceptLanguage) : []
  for (const range of [...uiLocales.slice(0, maxRanges), ...ofBrowser, fallbackLanguage]) {
    const found = lookUp(range)
    if (found !== undefined) return found
  }
  return fallback
}

/** `pickLocale` with the settings of the moment. */
export type LocaleOf = (asked: Omit<Parameters<typeof pickLocale>[0], 'languageInfo'>) => Locale

export const createLocaleOf =
  (settings: () => { languageInfo: LanguageInfo }): LocaleOf =>
  (asked) =>
    pickLocale({ ...asked, languageInfo: settings().languageInfo })

/** All our languages are primary subtags, so that is all there is to compare. */
const lookUp = (range: string): Locale | undefined => {
  const [primary = ''] = range.trim().toLowerCase().split('-', 1)
  return locales.find((locale) => locale === primary)
}

/** RFC 9110 §12.5.4: by quality, highest first; equal ones stay in order, and a quality of 0 means "not this one". */
const rangesOf = (acceptLanguage: string): string[] =>
  acceptLanguage
    .split(',', maxRanges)
    .map((part) => {
      const [range = '', ...parameters] = part.split(';').map((text) => text.trim())
      const quality = parameters.find((parameter) => /^q=/i.test(parameter))
      return { range, quality: quality === undefined ? 1 : Number(quality.slice(2)) }
    })
    .filter(({ quality }) => quality > 0)
    .toSorted((one, other) => other.quality - one.quality)
    .map(({ range }) => range)
