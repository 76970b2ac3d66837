import { describe, expect, test } from 'vitest'
import {
  addressPage,
  codePage,
  consentPage,
  detailsPage,
  errorPage,
  finishedPage,
  type Locale,
  logoutPage,
  selectAccountPage,
  signedOutPage,
  signInPage,
} from '../../../issuer/pages/index.ts'
import { catalogues } from '../../../issuer/pages/messages/catalogues.ts'
import { passkeyScript } from '../../../issuer/pages/passkey-script.ts'
import { styles } from '../../../issuer/pages/styles.ts'
import { everyPage, passwordIssues } from './every-page.ts'

const locales = Object.keys(catalogues) as Locale[]
const client = { name: 'Acme' }
const form = { locale: 'en', client, action: '/sign-in/i1', csrf: 'csrf-value' } as const
const signIn = { ...form, canCancel: true } as const
const account = { name: 'Ada', identifier: 'ada@example.com' }
const consent = {
  ...form,
  account,
  scopes: [{ name: 'openid' }],
  resources: [],
  organizations: [],
  redirectHost: 'app.example',
}

const titleOf = (content: string) => /<title>([^<]*)<\/title>/.exec(content)?.[1]
const tag = (content: string, pattern: RegExp) => content.match(new RegExp(`<[^>]*${pattern.source}[^>]*>`))?.[0]

describe.each(locales)('in %s', (locale) => {
  test.each(Object.entries(everyPage(locale)))('%s says so, and says everything', (_name, { content }) => {
    expect(content).toContain(`<html lang="${locale}" dir="ltr">`)
    expect(titleOf(content)).toMatch(/\S/)
    expect(content).toMatch(/<h1>.*\S.*<\/h1>/s)
    const told = content.replace(/<script src="[^"]*"[^>]*><\/script>/, '')
    expect(told).not.toMatch(/undefined|\[object|\{\w+\}|<(\w+)( [^>]*)?>\s*<\/\1>/)
  })

  test('a page with its stylesheet is small', () => {
    const sizes = Object.values(everyPage(locale)).map(({ content }) => Buffer.byteLength(content + styles))
    expect(Math.max(...sizes)).toBeLessThanOrEqual(15_360)
    expect(Buffer.byteLength(passkeyScript)).toBeLessThanOrEqual(2_048)
  })
})

describe('what others have chosen', () => {
  const hostile = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202Egnp.exe\u0007'

  test.each(Object.entries(everyPage('en', hostile)))('%s escapes it', (_name, { content }) => {
    expect(content).not.toMatch(/<script>alert|<img src=x/)
    // In the value of a field it goes back to where it came from, and a field keeps its direction to itself.
    expect(content.replace(/ value="[^"]*"/g, '')).not.toMatch(/[\u202e\u0007]/)
  })

  test.each(Object.entries(everyPage('en', 'x'.repeat(10_000))))('%s cuts it', (name, { content }) => {
    // A value that goes back to where it came from is not ours to cut.
    const shown = content.replace(/ (value|d)="[^"]*"/g, '')
    expect(shown.length, name).toBeLessThan(6_000)
  })

  test('its direction does not reach the words around it', () => {
    const { content } = signInPage({ ...signIn, client: { name: 'שלום' } })
    expect(content).toContain('to continue to <bdi>שלום</bdi>')
    expect(titleOf(content)).toBe('Sign in · \u2068שלום\u2069')
  })

  test('a host is shown whole: its end says whose it is', () => {
    const redirectHost = `accounts.bank.example.${'a'.repeat(60)}.evil.example`
    expect(consentPage({ ...consent, redirectHost }).content).toContain(`<bdi>${redirectHost}</bdi>`)
  })

  test('what nobody sees is left out of a name, and written out in a value', () => {
    expect(
      signInPage({ ...signIn, client: { name: '\u2067A\u200bc\u00adme\u2069\n می\u200cخواهم' } }).content,
    ).toContain('to continue to <bdi>Acme می\u200cخواهم</bdi>')
    expect(signInPage({ ...signIn, client: { name: ' \u200b' } }).content).toContain('to continue to <bdi>…</bdi>')
    const error = { locale: 'en', problem: 'invalid_redirect_uri', requestId: 'r1' } as const
    expect(errorPage({ ...error, value: 'https://a.example/\u200b\r\ncb' }).content).toContain(
      '<bdi>https://a.example/\\u{200b}\\u{d}\\u{a}cb</bdi>',
    )
  })

  test('a refused value is text, never a link', () => {
    const { content } = errorPage({
      locale: 'en',
      problem: 'invalid_redirect_uri',
      requestId: 'r1',
      client,
      value: 'https://evil.example/',
    })
    expect(content).toContain('<code><bdi>https://evil.example/</bdi></code>')
    expect(content).not.toContain('href="https://evil.example')
  })
})

describe('signing in', () => {
  test('a password manager finds both fields, and nothing is filled in but what was entered', () => {
    const { content } = signInPage({ ...signIn, identifier: 'ada@example.com', keep: true })
    expect(tag(content, /name="identifier"/)).toMatch(
      /type="text" value="ada@example.com".*autocomplete="username webauthn"/s,
    )
    expect(tag(content, /name="password"/)).toMatch(/type="password".*autocomplete="current-password"/s)
    expect(tag(content, /name="password"/)).not.toContain('value=')
    expect(tag(content, /name="keep"/)).toBe('<input type="checkbox" name="keep" value="yes" checked>')
    expect(tag(content, /name="csrf"/)).toBe('<input type="hidden" name="csrf" value="csrf-value">')
    expect(content).toContain('<form method="post" action="/sign-in/i1" novalidate>')
  })

  test('Enter signs in: the first button does that, and who cannot cancel has no second', () => {
    const choices = (content: string) => [...content.matchAll(/name="choice" value="(\w+)"/g)].map(([, value]) => value)
    expect(choices(signInPage(signIn).content)).toEqual(['sign_in', 'cancel'])
    expect(choices(signInPage({ ...signIn, canCancel: false }).content)).toEqual(['sign_in'])
  })

  test('an error is in the title, in a summary that has the focus, and at its field', () => {
    const { content } = signInPage({ ...signIn, identifier: 'ada', error: 'invalid_credentials' })
    expect(titleOf(content)).toBe('Error: Sign in · \u2068Acme\u2069')
    expect(tag(content, /role="alert"/)).toContain('tabindex="-1" autofocus')
    expect(content).toContain('<a href="#password">These details do not match')
    expect(content).toContain('<p class="message" id="password-error">These details do not match')
    expect(tag(content, /name="password"/)).toMatch(/aria-invalid="true" aria-describedby="password-error"/)
    expect(content.match(/ autofocus/g)).toHaveLength(1)
  })

  test('who has to wait is told how long, and is sent to no field', () => {
    const { content } = signInPage({ ...signIn, error: 'locked', minutes: 15 })
    expect(content).toContain('Please try again in 15 minutes.')
    expect(content).not.toContain('aria-invalid')
  })

  test('who has to prove who they are cannot become somebody else on the way', () => {
    const { content } = signInPage({ ...signIn, account: 'ada@example.com', identifier: 'eve', reasons: 'max_age' })
    expect(tag(content, /name="identifier"/)).toMatch(/value="ada@example.com".* readonly>/s)
    expect(tag(content, /name="password"/)).toContain('autofocus')
    expect(content).not.toContain('eve')
  })
})

describe('consent', () => {
  test('scopes are told in words; those of a resource in its operator’s', () => {
    const { content } = consentPage({
      ...consent,
      scopes: [
        { name: 'email', description: 'Not this' },
        { name: 'invite', description: 'Invite members' },
      ],
      resources: [{ name: 'Orders', scopes: [{ name: 'email' }, { name: 'constructor', description: ' ' }] }],
    })
    const items = [...content.matchAll(/<li>(.*?)<\/li>/g)].map(([, item]) => item)
    expect(items).toEqual([
      'See your email address',
      '<bdi>Invite members</bdi>',
      '<code><bdi>email</bdi></code>',
      '<code><bdi>constructor</bdi></code>',
    ])
    expect(content).toContain('In <bdi>Orders</bdi>, it would like to')
  })

  test('Enter does not switch accounts, and no organization is chosen beforehand', () => {
    const { content } = consentPage({ ...consent, organizations: [{ id: 'o1', name: 'Northwind' }] })
    const [another, answer] = content.split('<form ').slice(1)
    expect(another).toMatch(/name="csrf" value="csrf-value".*name="choice" value="another"/s)
    expect(answer).toMatch(/name="csrf" value="csrf-value".*value="allow".*value="deny"/s)
    expect(answer).toContain('<input type="checkbox" name="organizationIds" value="o1">')
  })

  test('it names the person and where they will be sent', () => {
    const { content } = consentPage(consent)
    expect(content).toContain('<bdi>ada@example.com</bdi>')
    expect(content).toContain('Afterwards you go on to <b><bdi>app.example</bdi></b>.')
  })
})

describe('signing in without a password', () => {
  const passkey = { proofId: 'p1', options: { challenge: '<"&>' }, hasButton: true, isConditional: true }
  const wordsOf = (content: string) => [...content.matchAll(/<button[^>]*>([^<]*)</g)].map(([, words]) => words)

  test('every way that is enabled is on the one page, and Enter uses the first', () => {
    const { content } = signInPage({ ...signIn, byCode: ['email'], canRegister: true, canReset: true, passkey })
    expect(wordsOf(content)).toEqual([
      'Sign in',
      'Send me a code',
      'Sign in with a passkey',
      'Forgot your password?',
      'Create an account',
      'Cancel',
    ])
    expect(wordsOf(signInPage({ ...signIn, byPassword: false, byCode: ['email'] }).content)[0]).toBe('Send me a code')
  })

  test('the button that needs the script is hidden without it, and only such a page may run one', () => {
    const { content, headers } = signInPage({ ...signIn, passkey })
    expect(content).toContain('<button type="button" class="quiet" hidden>Sign in with a passkey')
    expect(content).toMatch(
      /data-options="\{&quot;challenge&quot;:&quot;&lt;\\&quot;&amp;&gt;&quot;\}" data-conditional>/,
    )
    expect(content).toMatch(/<script src="\/assets\/passkeys\.[\da-f]{16}\.js" defer><\/script>/)
    expect(headers['Content-Security-Policy']).toContain("script-src 'self';")
    const without = signInPage(signIn)
    expect(without.headers['Content-Security-Policy']).toContain("script-src 'none';")
    expect(without.content).not.toContain('<script')
  })

  test('a telephone shows digits for a code, and offers the one that came', () => {
    const code = { ...form, type: 'phone', address: '442079460018', minutesGood: 10 } as const
    const { content } = codePage({ ...code, isAnother: false, isOnlyForAccounts: false })
    expect(tag(content, /name="code"/)).toMatch(/inputmode="numeric".*autocomplete="one-time-code".* autofocus/s)
    expect(content).toContain('<bdi>+442079460018</bdi>')
    expect(content).toContain('aria-describedby="code-hint"')
  })

  test('a new password is offered, kept under a name, and nobody else’s is filled in', () => {
    const details = { ...form, asksUsername: false, passwordLength: 12, account: 'ada', canSignIn: true } as const
    const { content } = detailsPage({ ...details, purpose: 'reset' })
    expect(tag(content, /name="password"/)).toMatch(/autocomplete="new-password".*passwordrules="minlength: 12;"/s)
    expect(tag(content, /autocomplete="username"/)).toContain('value="ada"')
    expect(content).toContain('At least 12 characters.')
  })

  test('everything that is wrong with a password is said at once, in the summary and at the field', () => {
    const details = { ...form, purpose: 'register', asksUsername: true, passwordLength: 12, canSignIn: true } as const
    const { content } = detailsPage({ ...details, errors: { password: { issues: passwordIssues } } })
    const [, summary] = /role="alert"[^>]*>([\s\S]*?)<\/div>/.exec(content)!
    expect(summary!.match(/<a href="#password">/g)).toHaveLength(passwordIssues.length - 1)
    expect(summary).toContain('Use at least 12 characters')
    expect(content.match(/id="password-error"/g)).toHaveLength(1)
    expect(tag(content, /name="password"/)).toContain('aria-describedby="password-hint password-error"')
  })

  test('an address gets the keys of its kind', () => {
    const inputFor = (types: readonly ('email' | 'phone')[]) =>
      tag(addressPage({ ...form, purpose: 'register', types, canSignIn: true }).content, /name="address"/)
    expect(inputFor(['email'])).toMatch(/type="email".*autocomplete="email"/s)
    expect(inputFor(['phone'])).toMatch(/type="tel".*autocomplete="tel"/s)
    expect(inputFor(['email', 'phone'])).toMatch(/type="text".*autocomplete="username"/s)
  })
})

test('choosing an account offers this one and another', () => {
  const { content } = selectAccountPage({ ...form, account })
  expect(content).toContain('<button name="choice" value="continue">Continue as <bdi>Ada</bdi></button>')
  expect(content).toContain('name="choice" value="another"')
})

test('programs that know Logto’s logout page find what they look for', () => {
  const { content } = logoutPage({ ...form, action: '/oidc/session/end/confirm', account })
  expect(content).toContain('<title>Sign Out</title>')
  expect(content).toMatch(/<form [^>]*id="op\.logoutForm" [^>]*action="\/oidc\/session\/end\/confirm">/)
  expect(content).toContain('name="xsrf" value="csrf-value"')
  expect(content).toContain('<button name="logout" value="yes">')
  expect(content).toMatch(/<input type="checkbox" name="everywhere" value="yes"/)
  // Whoever is merely sent here stays signed in: nothing submits the form by itself.
  expect(content).not.toMatch(/<script|onload/)

  const done = signedOutPage({ locale: 'en', client, wayOn: 'https://app.example/' }).content
  expect(done).toContain('<title>Sign Out</title>')
  expect(done).toContain('You have successfully signed out.')
})

describe('no page is a dead end', () => {
  test('each leads on where it is told to', () => {
    const wayOn = 'https://app.example/?a=b&c'
    const link = (text: string, href = 'https://app.example/?a=b&amp;c') =>
      `<a class="button" href="${href}" rel="noreferrer">${text}</a>`
    expect(signedOutPage({ locale: 'en', client, wayOn }).content).toContain(link('Back to <bdi>Acme</bdi>'))
    expect(finishedPage({ locale: 'en', client, wayOn }).content).toContain(link('Continue to <bdi>Acme</bdi>'))
    expect(finishedPage({ locale: 'en', wayOn }).content).toContain(link('Continue'))
    const error = { locale: 'en', problem: 'expired', requestId: 'r1' } as const
    expect(errorPage({ ...error, wayOn: { href: '/oidc/auth?x=y', kind: 'start_again' } }).content).toContain(
      link('Start again', '/oidc/auth?x=y'),
    )
    expect(errorPage({ ...error, client, wayOn: { href: wayOn, kind: 'application' } }).content).toContain(
      link('Back to <bdi>Acme</bdi>'),
    )
    expect(finishedPage({ locale: 'en', wayOn: 'com.example.app:/callback' }).content).toContain('com.example.app:/')
  })

  test.each([
    'javascript:alert(1)',
    'data:text/html,x',
    'JAVASCRIPT:alert(1)',
    ' javascript:x',
    '/\t/evil.example',
    '/\n/evil.example',
    '//evil.example',
    '/\\evil',
  ])('and nowhere by %s', (wayOn) => {
    expect(finishedPage({ locale: 'en', wayOn }).content).not.toContain('<a ')
  })
})

describe('colours', () => {
  const light = /:root\{([^}]*)\}/.exec(styles)![1]!
  const dark = /dark\)\{:root\{([^}]*)\}/.exec(styles)![1]!

  const luminance = (hex: string) => {
    const digits = hex.length === 4 ? hex.replace(/[\da-f]/g, '$&$&') : hex
    const [red, green, blue] = [1, 3, 5].map((at) => {
      const part = Number.parseInt(digits.slice(at, at + 2), 16) / 255
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!
  }

  /** WCAG 2.2, "contrast ratio". */
  const contrast = (one: string, other: string) => {
    const [darker, lighter] = [luminance(one), luminance(other)].toSorted((left, right) => left - right)
    return (lighter! + 0.05) / (darker! + 0.05)
  }

  test.each([
    ['light', light],
    ['dark', dark],
  ])('%s ones can be told apart', (_theme, block) => {
    const colours = Object.fromEntries(
      [...block.matchAll(/--([\w-]+):(#[\da-f]{3,6});/g)].map(([, name, hex]) => [name!, hex!]),
    )
    const ratio = (one: string, other: string) => contrast(colours[one]!, colours[other]!)
    for (const [text, ground] of [
      ['text', 'card'],
      ['text', 'page'],
      ['text', 'field'],
      ['text', 'bad-tint'],
      ['soft', 'card'],
      ['soft', 'page'],
      ['main', 'card'],
      ['main', 'tint'],
      ['bad', 'card'],
      ['bad', 'bad-tint'],
      ['on-main', 'main'],
      ['on-main', 'main-over'],
    ] as const)
      expect(ratio(text, ground), `${text} on ${ground}`).toBeGreaterThanOrEqual(4.5)
    for (const [edge, ground] of [
      ['edge', 'card'],
      ['edge', 'field'],
      ['good', 'good-tint'],
    ] as const)
      expect(ratio(edge, ground), `${edge} beside ${ground}`).toBeGreaterThanOrEqual(3)
  })
})
