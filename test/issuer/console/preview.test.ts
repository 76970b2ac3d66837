import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Browser } from '../../support/browser.ts'
import { startTestConsole, type TestConsole } from '../../support/console.ts'

/** What the console frames, and what it checks tokens with. */

let home: TestConsole
let browser: Browser
beforeAll(async () => {
  home = await startTestConsole()
  browser = await home.browserOf(await home.createMember('auditor'))
})
afterAll(() => home.close())

const ask = (form: Record<string, string>, headers: Record<string, string> = { 'sec-fetch-site': 'same-origin' }) =>
  browser.send(`${home.issuer.baseUrl}/console/preview`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: new URLSearchParams(form).toString(),
  })

test('a page with settings that are not saved: it does nothing, and only our own pages frame it', async () => {
  const settings = { experience: { displayName: 'Acme & Sons', customCss: 'h1 { color: rebeccapurple }' } }
  const { status, headers, text } = await ask({ settings: JSON.stringify(settings), locale: 'de', theme: 'dark' })
  expect(status).toBe(200)
  expect(text).toContain('Acme &amp; Sons')
  expect(text).toContain('rebeccapurple')
  expect(text).toContain('<html lang="de"')
  const policy = headers.get('content-security-policy')!
  expect(policy).toMatch(/^default-src 'none'; sandbox; /)
  expect(policy).toContain("frame-ancestors 'self'")
  expect(policy).not.toContain('unsafe')
  expect((await home.issuer.api('GET', '/sign-in-exp')).body.displayName).toBe(null)
})

test('the longest stylesheet fits', async () => {
  const customCss = `/* ${'ü'.repeat(16_300)} */`
  expect(await ask({ settings: JSON.stringify({ experience: { customCss } }) })).toMatchObject({ status: 200 })
})

test.for([
  ['what is no JSON', { settings: '{' }, 'guard.invalid_input'],
  ['nothing', {}, 'guard.invalid_input'],
  ['a colour that is none', { settings: '{"experience":{"color":{"primaryColor":"}"}}}' }, 'guard.invalid_input'],
  ['another page', { settings: '{}', step: 'account' }, 'guard.invalid_input'],
] as const)('%s is refused', async ([, form, code]) => {
  const { status, text } = await ask(form)
  expect([status, JSON.parse(text).code]).toEqual([400, code])
})

test('another site cannot show it, and nobody without a session', async () => {
  expect(await ask({ settings: '{}' }, { 'sec-fetch-site': 'cross-site' })).toMatchObject({ status: 403 })
  browser.cookies.clear()
  expect(await ask({ settings: '{}' })).toMatchObject({ status: 401 })
})

test('the published keys are those of the issuer', async () => {
  const [own, published] = await Promise.all(
    ['/console/jwks', '/oidc/jwks'].map(async (path) => (await fetch(`${home.issuer.baseUrl}${path}`)).json()),
  )
  expect(own).toEqual(published)
})
