import { expect, test } from 'vitest'
import { render } from '../../../issuer/pages/html.ts'
import { catalogues } from '../../../issuer/pages/messages/catalogues.ts'
import { en } from '../../../issuer/pages/messages/en.ts'
import { translation } from '../../../issuer/pages/messages/translation.ts'
import { durationIn, sayIn } from '../../../issuer/pages/say.ts'

const namesIn = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).toSorted()

test.each(Object.entries(catalogues))('%s has every message, with the names that English has', (locale, messages) => {
  expect(Object.keys(messages)).toEqual(Object.keys(en))
  for (const [key, text] of Object.entries(messages)) {
    expect(text.trim(), `${locale} ${key}`).toBe(text)
    expect(text, `${locale} ${key}`).not.toBe('')
    expect(namesIn(text), `${locale} ${key}`).toEqual(namesIn(en[key as keyof typeof en]))
  }
})

test('a catalogue that lacks a message, has one too many, or loses a name, does not compile', () => {
  const { signIn: _, ...lacking } = en
  // @ts-expect-error `signIn` is missing
  translation(lacking)
  // @ts-expect-error `more` is nowhere said
  translation({ ...en, more: 'x' })
  // @ts-expect-error the name of the application is missing
  translation({ ...en, signInTo: 'to continue' })
  // @ts-expect-error there is no such name
  translation({ ...en, signIn: 'Sign in, {person}' })
  translation({ ...en, signInTo: '{application} is where you go on' })
})

test('a translation cannot bring markup with it', () => {
  const { en: english } = catalogues
  const before = english.signIn
  const writable = english as { signIn: string }
  try {
    writable.signIn = '<img src=x onerror=alert(1)>'
    expect(render(sayIn('en')('signIn'))).toBe('&lt;img src=x onerror=alert(1)&gt;')
  } finally {
    writable.signIn = before
  }
})

test('waiting is said in the words of the language', () => {
  expect(durationIn('en', 1)).toBe('1 minute')
  expect(durationIn('en', 0.2)).toBe('1 minute')
  expect(durationIn('de', 15)).toBe('15 Minuten')
  expect(durationIn('fr', 121)).toBe('3\u00a0heures')
  expect(durationIn('ja', 1440)).toBe('24 時間')
})
