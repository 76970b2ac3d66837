import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { type People, startPeople } from '../support/people.ts'
import { startWebsite, type Website } from '../support/website.ts'

/**
 * Where a form of ours may lead. Chromium holds every redirect after a POST against `form-action` of the page that sent
 * it (CSP §6.4.1), so one word too many there strands people between us and the application.
 */

describe.skipIf(!chromium)('in Chromium', () => {
  let people: People
  /** Sends everybody on to `beyond`. */
  let hop: Website
  let beyond: Website
  beforeAll(async () => {
    people = await startPeople()
    beyond = await startWebsite(() => ({ body: '<!doctype html><title>Beyond</title>' }))
    hop = await startWebsite(({ path }) => ({ status: 302, headers: { Location: `${beyond.url}${path}` } }))
  })
  afterAll(async () => {
    await hop?.close()
    await beyond?.close()
    await people?.close()
  })

  let context: BrowserContext
  let page: Page
  /** What Chromium says of itself: a policy that stopped it, a scheme that it does not know. */
  let said: string[]
  beforeEach(async () => {
    context = await people.browser.newContext()
    page = await context.newPage()
    said = []
    page.on('console', (message) => said.push(message.text()))
  })
  afterEach(() => context.close())

  const atBeyond = (url: URL) => url.origin === beyond.url

  test('a callback that leads to another site is reached from the sign-in, the consent and the logout', async () => {
    const client = await people.createClient({ isThirdParty: true, redirectUri: `${hop.url}/callback` })
    await page.goto(client.authorizationUrl())
    await people.signIn(page)
    await page.getByRole('button', { name: 'Allow', exact: true }).click()
    await page.waitForURL(atBeyond)
    await page.goto(client.authorizationUrl({ prompt: 'login' }))
    await people.signIn(page)
    await page.waitForURL(atBeyond)
    const leave = new URLSearchParams({ client_id: client.id, post_logout_redirect_uri: client.redirectUri })
    await page.goto(`${people.issuer.issuer}/session/end?${leave}`)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.waitForURL(atBeyond)
    expect(said).toEqual([])
  })

  test('a native application gets the code by its own scheme', async () => {
    const client = await people.createClient({ type: 'Native', redirectUri: 'com.example.shop:/callback' })
    await page.goto(client.authorizationUrl())
    const opened = page.waitForRequest((request) => request.url().startsWith(client.redirectUri))
    await people.signIn(page)
    const { code = '' } = Object.fromEntries(new URL((await opened).url()).searchParams)
    expect(await client.redeem(code)).toMatchObject({ status: 200 })
    expect(said).toEqual([])
  })

  test('it is the policy of the page that lets them through', async () => {
    const client = await people.createClient({ redirectUri: `${hop.url}/callback` })
    await page.route('**/sign-in/*', async (route, request) => {
      if (request.method() !== 'GET') return route.continue()
      const response = await route.fetch()
      const policy = `${response.headers()['content-security-policy']}; form-action 'self' ${hop.url}`
      await route.fulfill({ response, headers: { ...response.headers(), 'content-security-policy': policy } })
    })
    await page.goto(client.authorizationUrl())
    // Only what is asked for without a redirect comes by here.
    await page.reload()
    await people.signIn(page)
    await expect.poll(() => said).toEqual([expect.stringContaining('form-action')])
  })

  test('an answer by form_post arrives by POST', async () => {
    const client = await people.createClient()
    await page.goto(client.authorizationUrl({ response_mode: 'form_post' }))
    await people.signIn(page)
    await page.waitForURL((url) => url.origin === people.shop.url)
    const { method, headers, body } = people.shop.received.findLast(({ path }) => path === '/callback')!
    const { code = '' } = Object.fromEntries(new URLSearchParams(body))
    expect(method).toBe('POST')
    expect(headers).not.toHaveProperty('referer')
    expect(await client.redeem(code)).toMatchObject({ status: 200 })
    expect(said).toEqual([])
  })
})
