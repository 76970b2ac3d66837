import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { type People, type PeopleClient, password, startPeople } from '../support/people.ts'

/** What pages of other sites can do with the issuer in somebody's browser, with the cookie rules of a real one. */

describe.skipIf(!chromium)('in Chromium', () => {
  let people: People
  let client: PeopleClient
  beforeAll(async () => {
    people = await startPeople()
    client = await people.createClient()
  })
  afterAll(() => people?.close())

  let context: BrowserContext
  let page: Page
  beforeEach(async () => {
    await people.issuer.sql('DELETE FROM sessions')
    context = await people.browser.newContext()
    page = await context.newPage()
  })
  afterEach(() => context.close())

  const atShop = (url: URL) => url.origin === people.shop.url
  const hasSession = async () => (await context.cookies()).some(({ name }) => name === 'surrogate_session')

  /** A page of the shop with a form, which it sends. */
  const post = async (action: string, fields: Record<string, string>) => {
    await page.goto(people.shop.url)
    const inputs = Object.entries(fields).map(
      ([name, value]) => `<input name="${name}" value="${value.replaceAll('&', '&amp;')}">`,
    )
    await page.setContent(`<form method="post" action="${action}">${inputs.join('')}<button>Send</button></form>`)
    await page.getByRole('button', { name: 'Send' }).click()
  }

  const signIn = async () => {
    await page.goto(client.authorizationUrl())
    await people.signIn(page)
    await page.waitForURL(atShop)
  }

  test('a request that they post finds the session, although the cookie does not come with it', async () => {
    await signIn()
    const [endpoint = '', query] = client.authorizationUrl({ state: 'posted' }).split('?')
    await post(endpoint, Object.fromEntries(new URLSearchParams(query)))
    await page.waitForURL((url) => atShop(url) && url.searchParams.get('state') === 'posted')
    expect(await client.redeem(new URL(page.url()).searchParams.get('code')!)).toMatchObject({ status: 200 })
  })

  test('a logout that they post asks first', async () => {
    await signIn()
    await post(`${people.issuer.issuer}/session/end`, { client_id: client.id })
    await page.getByRole('heading', { name: 'Do you want to sign out?' }).waitFor()
    await page.getByRole('button', { name: 'Stay signed in' }).click()
    await page.getByRole('heading', { name: 'You are already signed in' }).waitFor()
    expect(await hasSession()).toBe(true)
  })

  test('they sign nobody in with a form of their own', async () => {
    await page.goto(client.authorizationUrl())
    const [action, csrf] = [page.url(), await page.locator('input[name=csrf]').first().inputValue()]
    await post(action, { csrf, identifier: 'ada', password, choice: 'sign_in' })
    await page.getByRole('heading', { name: 'This form could not be accepted' }).waitFor()
    expect(await hasSession()).toBe(false)
    expect(await people.issuer.sql('SELECT FROM sessions')).toEqual([])
  })

  test('they cannot show our pages within theirs, nor begin a sign-in there', async () => {
    await page.goto(client.authorizationUrl())
    const ours = page.url()
    const begun = () => people.issuer.sql('SELECT id FROM interactions ORDER BY id')
    const before = await begun()
    await page.goto(people.shop.url)
    const refused = page.waitForEvent('console', (message) => message.text().includes('frame-ancestors'))
    await page.setContent(`<iframe src="${ours}"></iframe>`)
    await refused
    const led = page.waitForEvent('framenavigated', (frame) => frame.url().includes('error=login_required'))
    await page.setContent(`<iframe src="${client.authorizationUrl().replaceAll('&', '&amp;')}"></iframe>`)
    await led
    expect(await begun()).toEqual(before)
  })

  test('they lose sight of a window that they opened for signing in', async () => {
    await page.goto(people.shop.url)
    const opened = context.waitForEvent('page')
    await page.evaluate(`popup = open('${client.authorizationUrl()}', 'popup', 'width=480,height=640')`)
    const popup = await opened
    await people.signIn(popup)
    await popup.waitForURL(atShop)
    expect(await page.evaluate('popup.closed')).toBe(true)
    expect(await popup.evaluate('window.opener')).toBe(null)
  })
})
