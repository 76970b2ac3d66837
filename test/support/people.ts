import { allowEverything } from './consent-scopes.ts'
import { createHash } from 'node:crypto'
import type { Browser, Page } from 'playwright-core'
import { randomToken } from '../../platform/ids.ts'
import { startChromium } from './chromium.ts'
import { type Answer, startTestIssuer, type TestIssuer, type TestIssuerOptions } from './issuer.ts'
import type { TestApplication } from './issuer-data.ts'
import { startWebsite, type Website } from './website.ts'

const verifier = randomToken()
const codeChallenge = createHash('sha256').update(verifier).digest('base64url')

export interface People {
  issuer: TestIssuer
  browser: Browser
  /** Where the application is; its callback greets whoever comes. */
  shop: Website
  ada: { id: string }
  createClient(options?: {
    type?: string
    name?: string
    isThirdParty?: boolean
    redirectUri?: string
  }): Promise<PeopleClient>
  /** On the page of signing in. */
  signIn(page: Page, options?: { password?: string }): Promise<void>
  close(): Promise<void>
}

export interface PeopleClient extends TestApplication {
  redirectUri: string
  /** The address that begins a sign-in. */
  authorizationUrl(parameters?: Record<string, string>): string
  redeem(code: string): Promise<Answer>
}

export const password = 'a good password'

/** An issuer and an application of another site, for people with a real browser. `close()` it. */
export const startPeople = async (options: TestIssuerOptions = {}): Promise<People> => {
  const issuer = await startTestIssuer(options)
  const shop = await startWebsite(({ path }) => ({
    body: `<!doctype html><title>Shop</title><h1>You are at ${path.split('?')[0]}</h1>`,
  }))
  const browser = await startChromium()
  const person = { username: 'ada', password, primaryEmail: 'ada@example.test', name: 'Ada Lovelace' }
  const ada = (await issuer.api('POST', '/users', person)).body

  const createClient: People['createClient'] = async (options = {}) => {
    const { isThirdParty = false, type = 'SPA', name = 'Shop', redirectUri = `${shop.url}/callback` } = options
    const { body } = await issuer.api('POST', '/applications', {
      ...{ name, type, isThirdParty },
      oidcClientMetadata: { redirectUris: [redirectUri], postLogoutRedirectUris: [`${shop.url}/`, redirectUri] },
    })
    const { id } = body as { id: string }
    if (isThirdParty) await issuer.sql(allowEverything)
    return {
      id,
      redirectUri,
      authorizationUrl: (parameters = {}) =>
        `${issuer.issuer}/auth?${new URLSearchParams({
          ...{ client_id: id, redirect_uri: redirectUri, response_type: 'code', scope: 'openid profile' },
          ...{ code_challenge: codeChallenge, code_challenge_method: 'S256', state: 'the state' },
          ...parameters,
        })}`,
      redeem: (code) =>
        issuer.token(
          { id },
          { grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: redirectUri },
        ),
    }
  }

  return {
    ...{ issuer, browser, shop, ada, createClient },
    async signIn(page, { password: entered = password } = {}) {
      await page.getByLabel('Email').fill('ada')
      await page.getByLabel('Password').fill(entered)
      await page.getByRole('button', { name: 'Sign in' }).click()
    },
    async close() {
      await browser.close()
      await shop.close()
      await issuer.close()
    },
  }
}
