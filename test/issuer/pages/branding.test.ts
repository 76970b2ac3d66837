import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import {
  applicationExperience,
  signInExperience,
} from '../../../issuer/directory/sign-in-experience/sign-in-experience.ts'
import { brandingFrom, type Locale, locales } from '../../../issuer/pages/index.ts'
import { previewOf } from '../../../issuer/pages/preview.ts'
import { styles } from '../../../issuer/pages/styles.ts'
import { contrast, themeOf } from '../../../issuer/pages/theme.ts'
import { everyPage } from './every-page.ts'

/** What operators put on pages: it can be read, and can do nothing. */

const brandingOf = (experience: object, own?: object) =>
  brandingFrom(
    signInExperience.schema.parse(experience),
    own && applicationExperience.parse(own),
    own && 'application0',
  )

const uploaded = `/assets/${'a'.repeat(64)}.svg`
const whole = {
  color: { primaryColor: '#ffdd00', darkPrimaryColor: '#203040' },
  branding: { logoUrl: uploaded, darkLogoUrl: 'https://cdn.acme.test/dark.png', favicon: uploaded },
  displayName: 'Acme Bank',
  termsOfUseUrl: 'https://acme.test/terms',
  privacyPolicyUrl: 'https://acme.test/privacy',
  supportEmail: 'help@acme.test',
  customContent: { note: 'For all.', 'note.de': 'Für alle.', 'sign_in.note': 'Never give your password to anybody.' },
}

describe('colours', () => {
  const grounds = { light: ['#ffffff', '#f4f5f8'], dark: ['#171a23', '#0d0f15'] } as const
  const steps = ['00', '33', '77', '99', 'cc', 'ff']
  const colors = steps.flatMap((red) => steps.flatMap((green) => steps.map((blue) => `#${red}${green}${blue}`)))

  test.each(['light', 'dark'] as const)('of every kind can be read in the %s theme', (theme) => {
    const unreadable = colors.filter((color) => {
      const variables = themeOf(theme, color)
      const pairs: [string, string][] = [
        [variables['--on-button']!, variables['--button']!],
        [variables['--on-button']!, variables['--button-over']!],
        [variables['--on-main']!, variables['--main']!],
        [variables['--on-main']!, variables['--main-over']!],
        ...[...grounds[theme], variables['--tint']!].map((ground): [string, string] => [variables['--main']!, ground]),
      ]
      return pairs.some(([text, ground]) => contrast(text, ground) < 4.5)
    })
    expect(unreadable).toEqual([])
    expect(contrast('#000', '#ffffff')).toBeCloseTo(21)
  })

  test('are shown as they are on buttons, corrected as text; ours need no stylesheet', () => {
    expect(themeOf('light', '#fd0')).toMatchObject({ '--button': '#ffdd00', '--on-button': '#000000' })
    expect(themeOf('light', '#fd0')['--main']).not.toBe('#ffdd00')
    expect(brandingOf({}).stylesheet).toBeUndefined()
    expect(brandingOf(whole).stylesheet?.css).toContain('--button:#ffdd00')
  })

  test('without a dark theme the light one is for everybody', () => {
    const { stylesheet, hasDarkTheme } = brandingOf({ color: { isDarkModeEnabled: false } })
    expect(hasDarkTheme).toBe(false)
    expect(stylesheet?.css).toMatch(/^@media \(prefers-color-scheme:dark\)\{:root\{color-scheme:light;--page: #f4f5f8;/)
  })
})

test('every page can have a text of its own, and its title says whose it is', () => {
  const names = [
    ...['sign_in', 'register', 'reset', 'profile', 'code', 'mfa', 'enrol', 'captcha', 'terms', 'select_account'],
    ...['passkey', 'consent', 'device', 'blocked', 'no_account', 'error', 'logout', 'signed_out', 'finished'],
  ]
  const texts = Object.fromEntries(names.map((name) => [`${name}.note`, `Of ${name}.`]))
  const pages = Object.entries(everyPage('en', 'Shop')).map(([name, page]) => ({
    name,
    content: page.branded(brandingOf({ displayName: 'Acme', customContent: { note: 'For all.', ...texts } })).content,
  }))
  expect(pages.filter(({ content }) => !/<bdi>Of [a-z_]+\./.test(content)).map(({ name }) => name)).toEqual([
    'formPost',
  ])
  const titleOf = (content: string) => /<title>(.*?)<\/title>/.exec(content)?.[1] ?? ''
  // Programs look for the plain title of the pages of signing out.
  const plain = pages.filter(({ content }) => !/ · .*(Shop|Acme)/.test(titleOf(content))).map(({ name }) => name)
  expect(plain.filter((name) => !/^(logout|signedOut)/.test(name))).toEqual([])
})

test('a stylesheet of an application has the address of its content, and takes the place of the issuer’s', () => {
  const [issuers, own] = [{ customCss: 'a{color:red}' }, { customCss: 'b{color:blue}' }]
  expect(brandingOf(issuers).stylesheet).toEqual({
    href: expect.stringMatching(/^\/assets\/branding\/default-[0-9a-f]{16}\.css$/),
    css: 'a{color:red}',
  })
  const { stylesheet } = brandingOf(issuers, own)
  expect(stylesheet).toEqual({
    href: expect.stringMatching(/^\/assets\/branding\/application0-[0-9a-f]{16}\.css$/),
    css: 'b{color:blue}',
  })
  expect(brandingOf({ displayName: 'Acme' }, { displayName: 'Shop' }).name).toBe('Shop')
  expect(brandingOf({ displayName: 'Acme' }, {}).name).toBe('Acme')
})

describe.each(locales as Locale[])('in %s', (locale) => {
  test.each(Object.entries(everyPage(locale)))('%s has the logo, the name, the links and the text', (name, page) => {
    const { content, headers } = page.branded(brandingOf(whole))
    expect(content).toContain(`<source srcset="https://cdn.acme.test/dark.png" media="(prefers-color-scheme: dark)">`)
    expect(content).toContain(`<img src="${uploaded}" alt="Acme Bank">`)
    expect(content).toContain('<footer><bdi>Acme Bank</bdi>')
    expect(content).not.toContain('Surrogate</footer>')
    for (const link of ['https://acme.test/terms', 'https://acme.test/privacy', 'mailto:help@acme.test']) {
      expect(content).toContain(`<a href="${link}" rel="noopener noreferrer" target="_blank">`)
    }
    const note = name.startsWith('signIn') ? whole.customContent['sign_in.note'] : undefined
    expect(content).toContain(note ?? (locale === 'de' ? 'Für alle.' : 'For all.'))
    expect(headers['Content-Security-Policy']).toMatch(
      /img-src 'self'( https:\/\/logos\.example)? https:\/\/cdn\.acme\.test;/,
    )
    expect(headers['Content-Security-Policy']).toContain("style-src 'self';")
    expect(content).not.toMatch(/<style|style="|undefined|\[object/)
  })

  test('a branded page with its stylesheets is small, as it is sent and, to sign in, even as it is read', () => {
    const branding = brandingOf({ ...whole, customCss: `main{border-radius:0}` })
    const css = styles + branding.stylesheet?.css
    for (const [name, page] of Object.entries(everyPage(locale))) {
      const text = page.branded(branding).content + css
      expect([name, gzipSync(text).length]).toEqual([name, expect.toSatisfy((bytes: number) => bytes <= 6_144)])
      if (name.startsWith('signIn')) expect(Buffer.byteLength(text)).toBeLessThanOrEqual(15_360)
    }
  })
})

describe('T 43, T 45: what operators write', () => {
  const hostile = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202Egnp.exe\u0007'
  const texts = { note: hostile, 'sign_in.note': `${hostile}<b>bold</b>` }

  test.each(Object.entries(everyPage('en', 'Acme')))('is escaped on %s', (_name, page) => {
    const branding = { ...brandingOf(whole), name: hostile, texts }
    const { content } = page.branded(branding)
    expect(content).not.toMatch(/<script>alert|<img src=x|<b>bold/)
    expect(content).not.toMatch(/[\u202e\u0007]/)
    expect(content).toContain('&lt;script&gt;')
    expect(previewOf(page, branding, 'light')).not.toMatch(/<script>alert|<img src=x|<b>bold/)
  })

  test.each(Object.entries(everyPage('en', 'Acme')))('is cut on %s', (_name, page) => {
    const long = 'x'.repeat(10_000)
    const { content } = page.branded({ ...brandingOf(whole), name: long, texts: { note: long } })
    expect(content).not.toContain('x'.repeat(1_001))
  })
})

describe('a preview', () => {
  test.each(['light', 'dark'] as const)('in the %s theme stands by itself, and sends and runs nothing', (theme) => {
    const html = previewOf(everyPage('en')['signIn']!, brandingOf({ ...whole, customCss: 'h1{color:red}' }), theme)
    expect(html).toContain(
      "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' https: http:; form-action 'none'",
    )
    expect(html).toContain('h1{color:red}</style>')
    expect(html).not.toMatch(/<link|<script|prefers-color-scheme/)
    expect(html).toContain(`<meta name="color-scheme" content="${theme}">`)
  })
})
