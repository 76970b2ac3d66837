import { readFile } from 'node:fs/promises'
import type LogtoClient from '@logto/browser'
import type { LogtoConfig } from '@logto/browser'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { chromium, startChromium } from '../support/chromium.ts'
import { startTestIssuer, type TestIssuer } from '../support/issuer.ts'
import { startWebsite, type Website } from '../support/website.ts'

/** A single-page application made with `@logto/browser`, on another site than the issuer, in a real browser. */

/** Where the browser finds what the SDK imports: the files of the packages, as they are. */
const packages = {
  '@logto/browser': '@logto/browser/lib/index.js',
  '@logto/client': '@logto/client/lib/index.js',
  '@logto/js': '@logto/js/lib/index.js',
  '@silverhand/essentials': '@silverhand/essentials/lib/index.js',
  'camelcase-keys': 'camelcase-keys/index.js',
  camelcase: 'camelcase/index.js',
  'map-obj': 'map-obj/index.js',
  'quick-lru': 'quick-lru/index.js',
  'js-base64': 'js-base64/base64.mjs',
  jose: '@logto/client/node_modules/jose/dist/browser/index.js',
}
const folder = new URL('../../node_modules/', import.meta.url)

const pageOf = (config: LogtoConfig) => `<!doctype html><title>Shop</title>
<script type="importmap">${JSON.stringify({
  imports: Object.fromEntries(Object.entries(packages).map(([name, file]) => [name, `/packages/${file}`])),
})}</script>
<script type="module">
import LogtoClient from '@logto/browser'
globalThis.client = new LogtoClient(${JSON.stringify(config)})
document.title = 'Shop is ready'
</script>`

describe.skipIf(!chromium)('@logto/browser', () => {
  let issuer: TestIssuer
  let shop: Website
  let orders: string
  let stock: string
  let ada: { id: string }
  let clientId: string
  let browser: Browser
  beforeAll(async () => {
    issuer = await startTestIssuer()
    ;[orders, stock] = [
      await issuer.createResource({ scopes: ['read:orders'] }),
      await issuer.createResource({ scopes: ['read:stock'] }),
    ]
    const person = { username: 'ada', password: 'a good password', primaryEmail: 'ada@example.test', name: 'Ada' }
    ada = (await issuer.api('POST', '/users', person)).body
    await issuer.grantUser(ada.id, orders, ['read:orders'])
    await issuer.grantUser(ada.id, stock, ['read:stock'])
    shop = await startWebsite(async ({ path }) => {
      if (path === '/empty') return {}
      if (path.startsWith('/packages/')) {
        const body = await readFile(new URL(path.slice('/packages/'.length), folder))
        return { headers: { 'Content-Type': 'text/javascript' }, body }
      }
      const config = { endpoint: issuer.baseUrl, appId: clientId, resources: [orders, stock] }
      return { body: pageOf({ ...config, scopes: ['email', 'read:orders', 'read:stock'] }) }
    })
    const application = await issuer.api('POST', '/applications', {
      ...{ name: 'Shop', type: 'SPA' },
      oidcClientMetadata: { redirectUris: [`${shop.url}/callback`], postLogoutRedirectUris: [`${shop.url}/`] },
    })
    clientId = application.body.id
    browser = await startChromium()
  })
  afterAll(async () => {
    await browser?.close()
    await shop?.close()
    await issuer?.close()
  })

  let context: BrowserContext
  let page: Page
  beforeEach(async () => {
    context = await browser.newContext()
    page = await context.newPage()
  })
  afterEach(() => context.close())

  /** The SDK in the page, once it is loaded. */
  const sdk = async () => {
    await page.waitForFunction("document.title === 'Shop is ready'")
    return page.evaluateHandle<LogtoClient>('client')
  }

  const signIn = async () => {
    await page.goto(shop.url)
    // It leaves the page, so nobody waits for its end.
    await (await sdk()).evaluate((client, uri) => void client.signIn(uri), `${shop.url}/callback`)
    await page.getByLabel('Email').fill('ada')
    await page.getByLabel('Password').fill('a good password')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.waitForURL((url) => url.origin === shop.url)
    const client = await sdk()
    await client.evaluate((client, url) => client.handleSignInCallback(url), page.url())
    return client
  }

  test('signs somebody in, gets tokens for two APIs at once, reads refusals, and signs out', async () => {
    const problems: string[] = []
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()))
    page.on('pageerror', (error) => problems.push(error.message))

    const client = await signIn()
    expect(await client.evaluate((client) => client.isAuthenticated())).toBe(true)
    expect(await client.evaluate((client) => client.getIdTokenClaims())).toMatchObject({
      ...{ iss: issuer.issuer, aud: clientId, sub: ada.id, name: 'Ada', email: 'ada@example.test' },
    })
    expect(await client.evaluate((client) => client.fetchUserInfo())).toMatchObject({ sub: ada.id, name: 'Ada' })
    const [forOrders, forStock] = await client.evaluate(
      (client, apis) => Promise.all(apis.map((api) => client.getAccessToken(api))),
      [orders, stock],
    )
    expect(await issuer.verify(forOrders!, orders)).toMatchObject({ sub: ada.id, scope: 'read:orders' })
    expect(await issuer.verify(forStock!, stock)).toMatchObject({ sub: ada.id, scope: 'read:stock' })

    await page.goto(shop.url)
    await (await sdk()).evaluate((client) => client.clearAccessToken())
    const later = await (await sdk()).evaluate((client, api) => client.getAccessToken(api), orders)
    expect(await issuer.verify(later, orders)).toMatchObject({ sub: ada.id })

    expect(problems).toEqual([])
    const refused = await (await sdk()).evaluate((client) =>
      client.getAccessToken('https://elsewhere.example.test').catch(({ name, code }) => ({ name, code })),
    )
    expect(refused).toEqual({ name: 'LogtoRequestError', code: 'oidc.invalid_target' })

    const before = shop.received.length
    await (await sdk()).evaluate((client, uri) => void client.signOut(uri), `${shop.url}/`)
    await expect.poll(() => shop.received.slice(before).map(({ path }) => path)).toContain('/')
    expect(await (await sdk()).evaluate((client) => client.isAuthenticated())).toBe(false)
    expect((await context.cookies()).map(({ name }) => name)).not.toContain('surrogate_session')
  })

  test('only pages of a registered origin can read what the token endpoint says', async () => {
    const ask = (url: string) =>
      fetch(url, { method: 'POST', body: new URLSearchParams({ grant_type: 'refresh_token' }) }).then(
        ({ status }) => status,
        ({ message }) => message,
      )
    await page.goto(`${shop.url}/empty`)
    expect(await page.evaluate(ask, `${issuer.issuer}/token`)).toBe(401)
    await page.goto(`${shop.url.replace('127.0.0.1', 'localhost')}/empty`)
    expect(await page.evaluate(ask, `${issuer.issuer}/token`)).toBe('Failed to fetch')
  })
})
