import { expect, test } from 'vitest'
import { pickLocale } from '../../../issuer/pages/index.ts'

test.each([
  [{}, 'en'],
  [{ acceptLanguage: 'de' }, 'de'],
  [{ acceptLanguage: 'de-AT,en;q=0.8' }, 'de'],
  [{ acceptLanguage: 'en;q=0.5, fr;q=0.9' }, 'fr'],
  [{ acceptLanguage: 'pt-BR, es-419;q=0.7, en;q=0.3' }, 'es'],
  [{ acceptLanguage: 'de;q=0, ja;q=0.1' }, 'ja'],
  [{ acceptLanguage: 'DE-ch' }, 'de'],
  [{ acceptLanguage: '*' }, 'en'],
  [{ acceptLanguage: 'xx;q=zzz, ;;;,,,' }, 'en'],
  [{ acceptLanguage: 'constructor, __proto__' }, 'en'],
  [{ uiLocales: ['ja'], acceptLanguage: 'de' }, 'ja'],
  [{ uiLocales: ['pt', 'fr-CA'], acceptLanguage: 'de' }, 'fr'],
  [{ uiLocales: ['pt'], acceptLanguage: 'de' }, 'de'],
  [{ uiLocales: [], acceptLanguage: `${'xx,'.repeat(1000)}de` }, 'en'],
] as const)('%j is answered in %s', (asked, locale) => {
  expect(pickLocale(asked)).toBe(locale)
})
