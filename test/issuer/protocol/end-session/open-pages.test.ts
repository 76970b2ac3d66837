import { afterAll, beforeAll, expect, test } from 'vitest'
import { challengeOf } from '../../../support/authorizations.ts'
import { type Browser, createBrowser } from '../../../support/browser.ts'
import { startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'

/** Pages of signing in that stay open in other tabs while somebody signs out. */

let issuer: TestIssuer
let partner: string
let shop: string
beforeAll(async () => {
  issuer = await startTestIssuer()
  const create = async (members: object) => {
    const oidcClientMetadata = { redirectUris: ['https://app.example.test/cb'] }
    const { body } = await issuer.api('POST', '/applications', {
      name: 'App',
      type: 'SPA',
      oidcClientMetadata,
      ...members,
    })
    return body.id as string
  }
  partner = await create({ isThirdParty: true })
  shop = await create({})
  await issuer.api('POST', '/users', { username: 'ada', password: 'a good password' })
})
afterAll(() => issuer.close())

const credentials = { identifier: 'ada', password: 'a good password', choice: 'sign_in' }

const ask = (browser: Browser, client: string, more: Record<string, string> = {}) =>
  browser.get(
    `${issuer.issuer}/auth?${new URLSearchParams({
      client_id: client,
      redirect_uri: 'https://app.example.test/cb',
      response_type: 'code',
      scope: 'openid profile',
      code_challenge: challengeOf('v'.repeat(43)),
      code_challenge_method: 'S256',
      ...more,
    })}`,
  )

const signOut = async (browser: Browser, everywhere: boolean) => {
  const page = await browser.get(`${issuer.issuer}/session/end`)
  await browser.submit(page, { logout: 'yes', ...(everywhere ? { everywhere: 'yes' } : {}) })
  expect(browser.cookies.has('surrogate_session')).toBe(false)
}

test.each([
  ['here', true, false],
  ['everywhere, from another browser', false, true],
])('a password typed before signing out %s opens nothing after it', async (_, isSameBrowser, everywhere) => {
  const browser = createBrowser(issuer.baseUrl)
  const consent = await browser.submit(await ask(browser, partner, { prompt: 'login consent' }), credentials)
  expect(consent.forms[0]?.fields).toHaveProperty('csrf')
  const leaving = isSameBrowser ? browser : createBrowser(issuer.baseUrl)
  expect((await leaving.submit(await ask(leaving, shop), credentials)).location).toContain('code=')
  await signOut(leaving, everywhere)

  const after = await browser.submit(consent, { choice: 'allow' })
  expect(after.location).toBeUndefined()
  expect(after.forms[0]?.names).toContain('password')
  expect(browser.cookies.has('surrogate_session')).toBe(false)
})
