import { expect, test } from 'vitest'
import { shownUrl } from '../../testing/browser.ts'
import { createCookieJar } from '../../testing/cookie-jar.ts'

test('codes, states and everything unknown are not shown, nor are passwords of an address', () => {
  const shown = (url: string) => shownUrl(new URL(url))
  expect(shown('https://app.test/cb?code=secret&state=secret&iss=https://id.test/oidc')).toBe(
    'https://app.test/cb?code=…&state=…&iss=https://id.test/oidc',
  )
  expect(
    shown('https://u:secret@id.test/oidc/auth?client_id=web&nonce=secret&request_uri=secret#id_token=secret'),
  ).toBe('https://id.test/oidc/auth?client_id=web&nonce=…&request_uri=…#…')
})

test('a cookie is kept until it is cleared, and never shown to another origin', () => {
  const now = Date.parse('2026-01-01T00:00:00Z')
  const jar = createCookieJar({ now: () => now })
  const issuer = new URL('https://id.test/oidc/auth')
  jar.store(issuer, [
    'surrogate_browser=a=b; Path=/; HttpOnly',
    '__Host-surrogate_session=c; Path=/; Secure; Max-Age=60',
    'short=d; Max-Age=1',
    'nonsense',
  ])
  expect(jar.header(new URL('https://id.test/sign-in/x'))).toBe(
    'surrogate_browser=a=b; __Host-surrogate_session=c; short=d',
  )
  jar.store(issuer, ['short=; Max-Age=0', 'surrogate_browser=e; Expires=Thu, 01 Jan 1970 00:00:00 GMT'])
  expect(jar.header(issuer)).toBe('__Host-surrogate_session=c')
  for (const other of ['https://app.test/', 'http://id.test/', 'https://id.test:8443/'])
    expect(jar.header(new URL(other))).toBe('')
})
