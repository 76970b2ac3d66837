import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { type People, password, startPeople } from '../support/people.ts'

/** The pages of signing in, as a real browser and its keys, tabs and cookies meet them. */

describe.skipIf(!chromium)('in Chromium', () => {
  let people: People
  beforeAll(async () => {
    people = await startPeople()
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
  const answerOf = (from: Page) => Object.fromEntries(new URL(from.url()).searchParams)
  const code = { code: expect.stringMatching(/^[\w-]{43}$/), state: 'the state', iss: expect.any(String) }

  test('the keyboard alone signs in, after a mistake too', async () => {
    const client = await people.createClient()
    // The browser gives the focus when it paints, which may be later than a page is loaded.
    const focused = (selector: string) => page.locator(`${selector}:focus`).waitFor()
    await page.goto(client.authorizationUrl())
    await focused('input[name=identifier]')
    await page.keyboard.type('ada')
    await page.keyboard.press('Tab')
    await page.keyboard.type('not the password')
    await page.keyboard.press('Enter')
    // What went wrong has the focus, so that it is read first. The link in it leads to the field.
    await focused('[role=alert]')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await focused('input[name=password]')
    await page.keyboard.type(password)
    await page.keyboard.press('Tab')
    await page.keyboard.press('Space')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.waitForURL(atShop)
    expect(answerOf(page)).toEqual(code)
    const session = (await context.cookies()).find(({ name }) => name === 'surrogate_session')
    // They asked to stay signed in.
    expect(session!.expires).toBeGreaterThan(Date.now() / 1000 + 86_400)
  })

  test('everything works without scripts', async () => {
    const client = await people.createClient({ isThirdParty: true })
    const scriptless = await people.browser.newContext({ javaScriptEnabled: false })
    const plain = await scriptless.newPage()
    await plain.goto(client.authorizationUrl({ response_mode: 'form_post' }))
    await people.signIn(plain, { password: 'not the password' })
    await plain.getByRole('alert').waitFor()
    await people.signIn(plain)
    await plain.getByRole('button', { name: 'Allow', exact: true }).click()
    await plain.getByRole('button', { name: 'Continue' }).click()
    await plain.waitForURL(atShop)
    const { method, body } = people.shop.received.findLast(({ path }) => path === '/callback')!
    expect({ method, ...Object.fromEntries(new URLSearchParams(body)) }).toEqual({ method: 'POST', ...code })

    await plain.goto(`${people.issuer.issuer}/session/end?client_id=${client.id}`)
    await plain.getByRole('button', { name: 'Sign out' }).click()
    await plain.getByRole('heading', { name: 'You have successfully signed out' }).waitFor()
    expect((await scriptless.cookies()).map(({ name }) => name)).not.toContain('surrogate_session')
    await scriptless.close()
  })

  test('cookies are for the issuer alone: no script and no other site sees them', async () => {
    const client = await people.createClient()
    await page.goto(client.authorizationUrl())
    await people.signIn(page)
    await page.waitForURL(atShop)
    const cookies = await context.cookies()
    expect(cookies.map(({ name }) => name).toSorted()).toEqual([
      'surrogate_browser',
      'surrogate_device',
      'surrogate_session',
    ])
    for (const cookie of cookies)
      expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Lax', path: '/', domain: 'localhost' })
    expect(cookies.find(({ name }) => name === 'surrogate_session')!.expires).toBe(-1)
    await page.goto(client.authorizationUrl({ prompt: 'login' }))
    expect(await page.evaluate('document.cookie')).toBe('')
    // Another site that asks for the page, as an image or by a script, asks without them.
    await page.goto(people.shop.url)
    const asked = page.waitForRequest((request) => request.url().startsWith(people.issuer.issuer))
    await page.evaluate(
      (url) => fetch(url, { mode: 'no-cors', credentials: 'include' }).catch(() => {}),
      client.authorizationUrl(),
    )
    expect(await (await asked).allHeaders()).not.toHaveProperty('cookie')
  })

  test('forms say where they come from, and the application does not learn it', async () => {
    const client = await people.createClient()
    await page.goto(client.authorizationUrl())
    const posted = page.waitForRequest((request) => request.method() === 'POST')
    await people.signIn(page)
    expect(await (await posted).allHeaders()).toMatchObject({
      origin: people.issuer.baseUrl,
      'sec-fetch-site': 'same-origin',
    })
    await page.waitForURL(atShop)
    const { headers } = people.shop.received.findLast(({ path }) => path.startsWith('/callback'))!
    expect(headers).not.toHaveProperty('referer')
    expect(headers).not.toHaveProperty('origin')
  })

  test('two clicks on the button sign in once, with a code that works', async () => {
    const client = await people.createClient()
    await page.goto(client.authorizationUrl())
    await page.getByLabel('Email').fill('ada')
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in' }).dblclick()
    // The second click breaks off where the first one went, and with it a wait for that.
    await expect.poll(() => atShop(new URL(page.url()))).toBe(true)
    expect(await client.redeem(answerOf(page)['code']!)).toMatchObject({ status: 200 })
    expect(await people.issuer.sql('SELECT FROM sessions')).toHaveLength(1)
    const authorizations = await people.issuer.sql('SELECT FROM authorizations WHERE client_id = $1', [client.id])
    expect(authorizations).toHaveLength(1)
  })

  test('Back, after the end, tells that it is done', async () => {
    const client = await people.createClient()
    await page.goto(client.authorizationUrl())
    await people.signIn(page)
    await page.waitForURL(atShop)
    await page.goBack()
    await page.getByRole('heading', { name: 'You are already signed in' }).waitFor()
    expect(await page.getByLabel('Password').count()).toBe(0)
  })

  test('two tabs sign in to two applications, one between the steps of the other', async () => {
    const [mine, other] = [await people.createClient(), await people.createClient({ isThirdParty: true })]
    const second = await context.newPage()
    await page.goto(mine.authorizationUrl())
    await second.goto(other.authorizationUrl())
    await people.signIn(second)
    await people.signIn(page)
    await page.waitForURL(atShop)
    await second.getByRole('button', { name: 'Allow', exact: true }).click()
    await second.waitForURL(atShop)
    for (const [client, tab] of [
      [mine, page],
      [other, second],
    ] as const) {
      expect(await client.redeem(answerOf(tab)['code']!)).toMatchObject({ status: 200 })
    }
  })

  test.each(['de', 'fr', 'ja'])('on a phone nothing is cut off (%s)', async (locale) => {
    const client = await people.createClient({ isThirdParty: true, name: 'Einkaufsgenossenschaftsverwaltung' })
    const problems: string[] = []
    page.on('console', (message) => message.text().includes('Content Security') && problems.push(message.text()))
    await page.setViewportSize({ width: 320, height: 640 })
    const fits = async () => {
      expect(await page.locator('html').getAttribute('lang')).toBe(locale)
      expect(await page.evaluate('document.documentElement.scrollWidth'), page.url()).toBe(320)
    }
    const enter = async (entered: string) => {
      await page.locator('#identifier').fill('ada')
      await page.locator('#password').fill(entered)
      await page.locator('button[value=sign_in]').click()
    }
    await page.goto(client.authorizationUrl({ ui_locales: locale, scope: 'openid profile email phone address roles' }))
    await fits()
    await enter('not the password')
    await page.getByRole('alert').waitFor()
    await fits()
    await enter(password)
    const allow = page.locator('button[value=allow]')
    await allow.waitFor()
    await fits()
    await allow.click()
    await page.waitForURL(atShop)
    await page.goto(`${people.issuer.issuer}/session/end?client_id=${client.id}&ui_locales=${locale}`)
    await fits()
    await page.locator('button[name=logout]').click()
    await page.locator('.good').waitFor()
    expect(problems).toEqual([])
  })
})
