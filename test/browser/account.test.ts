import type { BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { accessibilityProblems } from '../support/pages-in-chromium.ts'
import { attachAuthenticator } from '../support/passkeys.ts'
import { type People, password, startPeople } from '../support/people.ts'

/** The account pages in Chromium: for people who see little, who use a telephone, or the keyboard alone. */

const paths = [
  ...['', '/profile', '/email', '/phone', '/username', '/password', '/passkeys', '/authenticator'],
  ...['/backup-codes', '/sessions', '/applications', '/impersonations', '/data', '/confirm'],
].map((path) => `/account${path}`)

describe.skipIf(!chromium)('in Chromium', () => {
  let people: People
  beforeAll(async () => {
    people = await startPeople()
    const mfa = { factors: ['Totp', 'WebAuthn', 'BackupCode'], policy: 'NoPrompt' }
    await people.issuer.api('PATCH', '/sign-in-exp', { mfa })
  })
  afterAll(() => people?.close())

  const open = async (options: BrowserContextOptions = {}) => {
    const context = await people.browser.newContext(options)
    const page = await context.newPage()
    const problems: string[] = []
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()))
    page.on('pageerror', (error) => problems.push(String(error)))
    await page.goto(`${people.issuer.baseUrl}/account/sessions`)
    await page.locator('[name=identifier]').fill('ada')
    await page.locator('[name=password]').fill(password)
    await page.locator('[value=sign_in]').click()
    await page.waitForURL((url) => url.pathname === '/account/sessions')
    return { context, page, problems }
  }

  const confirm = async (page: Page, next: string) => {
    await page.goto(`${people.issuer.baseUrl}/account/confirm?next=${next}&with=password`)
    await page.locator('[name=password]').fill(password)
    await page.locator('[value=verify]').click()
    await page.waitForURL((url) => url.pathname === next)
  }

  const visit = (page: Page, path: string) => page.goto(`${people.issuer.baseUrl}${path}`)

  test.each(['light', 'dark'] as const)('whoever sees little can use every page (%s)', async (colorScheme) => {
    const { context, page, problems } = await open({ colorScheme, viewport: { width: 1280, height: 900 } })
    for (const path of paths) {
      await visit(page, path)
      expect(await accessibilityProblems(page), path).toEqual([])
    }
    await confirm(page, '/account/sessions')
    for (const path of paths) {
      await visit(page, path)
      expect(await accessibilityProblems(page), `${path}, confirmed`).toEqual([])
    }
    expect(problems).toEqual([])
    await context.close()
  })

  test.each([
    ['a small telephone', { viewport: { width: 320, height: 640 } }],
    ['a magnification of 200 %', { viewport: { width: 640, height: 360 }, deviceScaleFactor: 2 }],
  ] as const)('nothing is cut off by %s, and what can be touched is large enough', async (_name, options) => {
    const { context, page } = await open({ ...options, locale: 'de-DE' })
    await confirm(page, '/account/sessions')
    for (const path of paths) {
      await visit(page, path)
      expect(await page.evaluate('document.documentElement.scrollWidth'), path).toBe(options.viewport.width)
      const small = await page.evaluate<string[]>(
        `[...document.querySelectorAll('main button:not([hidden]), main .button, main .rows a, main .field input')]
          .filter((element) => element.getBoundingClientRect().height < 44).map((element) => element.outerHTML)`,
      )
      expect(small, path).toEqual([])
    }
    await context.close()
  })

  test('the Tab key reaches the content first where one wants it to, and everything in the order of reading', async () => {
    const { context, page } = await open({ viewport: { width: 1280, height: 900 } })
    await confirm(page, '/account/sessions')
    for (const path of ['/account', '/account/email', '/account/sessions', '/account/data']) {
      await visit(page, path)
      await page.evaluate('document.activeElement.blur()')
      await page.keyboard.press('Tab')
      expect(await page.evaluate('document.activeElement.className'), path).toContain('skip')
      await page.keyboard.press('Enter')
      const expected = await page.evaluate<string[]>(
        `[...document.querySelectorAll('main a[href], main button, main input:not([type=hidden]):not([tabindex])')]
          .filter((element) => element.getClientRects().length > 0).map((element) => element.outerHTML)`,
      )
      const reached: string[] = []
      while (reached.length < expected.length) {
        await page.keyboard.press('Tab')
        reached.push(await page.evaluate<string>('document.activeElement.outerHTML'))
      }
      expect(reached, path).toEqual(expected)
    }
    await context.close()
  })

  test('a passkey is added, confirms who the person is, gets a name and is removed', async () => {
    const { context, page, problems } = await open()
    await attachAuthenticator(page)
    await confirm(page, '/account/passkeys')
    await page.locator('[value=new]').click()
    await page.getByRole('button', { name: 'Make a passkey' }).click()
    await page.getByText('Your passkey is added.').waitFor()

    await visit(page, '/account/confirm?next=/account/passkeys')
    await page.getByRole('button', { name: 'Use your passkey' }).click()
    await page.getByText('Thank you. You can make changes now.').waitFor()
    await page.getByLabel('Name', { exact: true }).fill('My laptop')
    await page.locator('[value=rename]').click()
    await page.getByRole('heading', { name: 'My laptop' }).waitFor()
    await page.getByRole('button', { name: 'Remove My laptop' }).click()
    await page.getByText('You have no passkey.').waitFor()
    expect(problems).toEqual([])
    await context.close()
  })
})
