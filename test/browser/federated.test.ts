import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startChromium } from '../support/chromium.ts'
import { callback } from '../support/code-flow.ts'
import { startFederatedSignIn, type TestFederatedSignIn } from '../support/federated.ts'
import { accessibilityProblems } from '../support/pages-in-chromium.ts'

/** Identity providers in a real browser: from our page to theirs and back, with the cookies that it sends. */

let federated: TestFederatedSignIn
let browser: Browser
let count = 0
beforeAll(async () => {
  federated = await startFederatedSignIn()
  browser = await startChromium()
})
afterAll(async () => {
  await browser.close()
  await federated.close()
})
beforeEach(() => {
  federated.clock.now = Date.now()
  federated.provider.be()
  federated.provider.person = {
    ...{ sub: `subject-${++count}`, email: `ada${count}@example.com`, email_verified: true, name: 'Ada' },
  }
})

const open = async (options: BrowserContextOptions = {}): Promise<Page> => {
  const context = await browser.newContext({ viewport: { width: 900, height: 900 }, ...options })
  const page = await context.newPage()
  await page.route('https://shop.example.test/**', (route) =>
    route.fulfill({ contentType: 'text/html', body: '<title>Shop</title>' }),
  )
  return page
}
const begin = (page: Page, parameters = {}) =>
  page.goto(federated.flow.authorizationUrl(federated.client, { prompt: '', ...parameters }))
const atShop = (page: Page) => page.waitForURL((url) => url.href.startsWith(`${callback}?code=`))

test('a button leads to the provider and back to the application, with scripts and without', async () => {
  for (const javaScriptEnabled of [true, false]) {
    const page = await open({ javaScriptEnabled })
    await begin(page)
    await page.getByRole('button', { name: 'Continue with Acme' }).click()
    // Somebody new has a user name to choose here.
    if (javaScriptEnabled) {
      await page.getByLabel('Username').fill(`ada_${count}`)
      await page.getByRole('button', { name: 'Continue', exact: true }).click()
    }
    await atShop(page)
    await page.context().close()
  }
})

test('a provider that posts, as Apple does, is answered by a redirect with which the cookies come', async () => {
  const page = await open()
  await begin(page)
  const [request] = await Promise.all([
    page.waitForRequest((sent) => sent.url().startsWith(`${federated.provider.url}/authorize`)),
    page.route(`${federated.provider.url}/**`, (route) => route.fulfill({ contentType: 'text/html', body: '' })),
    page.getByRole('button', { name: 'Continue with Acme' }).click(),
  ])
  const back = await federated.provider.signIn(request.url())
  const inputs = [...back.searchParams].map(([name, value]) => `<input name="${name}" value="${value}">`).join('')
  await page.setContent(
    `<form method="post" action="${back.origin}${back.pathname}">${inputs}<button>Go</button></form>`,
  )
  await page.getByRole('button', { name: 'Go' }).click()
  await page.waitForURL(/\/sign-in\/[0-9a-z]{21}$/)
  await expect.poll(() => page.getByLabel('Username').isVisible()).toBe(true)
})

test('Enter signs in with what was typed, and presses no button of a provider', async () => {
  const person = await federated.createPerson()
  const page = await open()
  await begin(page)
  await page.getByLabel('Email, phone number or username').fill(person.username)
  await page.getByLabel('Password').fill(person.password)
  await page.keyboard.press('Enter')
  await atShop(page)
})

test('the pages are accessible in both themes, and fit 320 pixels', async () => {
  const pictures = process.env['SCREENSHOTS']
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of [320, 900]) {
      const page = await open({ colorScheme, viewport: { width, height: 900 } })
      const look = async (name: string) => {
        expect([name, await accessibilityProblems(page)]).toEqual([name, []])
        const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
        expect([name, overflow]).toEqual([name, 0])
        if (pictures) await page.screenshot({ path: `${pictures}/${name}-${colorScheme}-${width}.png`, fullPage: true })
      }
      await begin(page)
      await look('sign-in')
      federated.provider.be('error_with_script')
      await page.getByRole('button', { name: 'Continue with Acme' }).click()
      await look('refused')
      federated.provider.be()
      await begin(page, { first_screen: 'register' })
      await look('register')
      const person = await federated.personWith(`owner${++count}@example.com`)
      federated.provider.person = { sub: `owner-${count}`, email: person.email, email_verified: true }
      await begin(page)
      await page.getByRole('button', { name: 'Continue with Acme' }).click()
      await look('prove-first')
      await page.context().close()
    }
  }
})
