import { mkdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { DemoData, DemoFile } from '../../bin/demo/demo-file.ts'
import { chromium, startChromium } from '../support/chromium.ts'
import { accessibilityProblems } from '../support/pages-in-chromium.ts'
import type { TestProcess } from '../support/process.ts'
import { cleanUp, createSettings, demoOf, ready, type Settings, startSurrogate } from './stack.ts'

/** Support in one browser, the customer in another, at what `npm start` starts, with the rules that it brings. */

const root = fileURLToPath(new URL('../..', import.meta.url))
const screenshots = process.env['SCREENSHOTS']
const narrow = { viewport: { width: 320, height: 640 }, colorScheme: 'dark', javaScriptEnabled: false } as const

describe.skipIf(!chromium)('acting for a customer in the demo', { timeout: 180_000 }, () => {
  let settings: Settings
  let stack: TestProcess
  let demo: DemoFile & { data: DemoData }
  let browser: Browser

  beforeAll(async () => {
    // Nothing is compiled: the rules of the demo come built.
    settings = await createSettings(root, { env: { OPA_BIN: '/nowhere/opa' } })
    stack = startSurrogate(settings, 'start', '--demo')
    await stack.waitFor(ready)
    demo = (await demoOf(settings)) as typeof demo
    browser = await startChromium()
    if (screenshots) await mkdir(screenshots, { recursive: true })
  }, 180_000)
  afterAll(async () => {
    await browser?.close()
    await cleanUp(settings, stack)
  })

  const open = async (options?: BrowserContextOptions) => (await browser.newContext(options)).newPage()
  const picture = async (page: Page, name: string) => {
    if (screenshots) await page.screenshot({ path: `${screenshots}/${name}.png`, fullPage: true })
  }

  /** They have no second factor; whoever did not want one is not offered it again. */
  const offered = new Set<string>()
  const signIn = async (page: Page, { username, password }: DemoData['agent']) => {
    await page.getByLabel(/^Email/).fill(username)
    await page.getByLabel('Password', { exact: true }).fill(password)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    if (!offered.has(username)) await page.getByRole('button', { name: 'Not now' }).click()
    offered.add(username)
  }
  const atSupport = async (options?: BrowserContextOptions) => {
    const page = await open(options)
    await page.goto(`${demo.webUrl}/sign-in`)
    await signIn(page, demo.data.agent)
    await page.getByRole('link', { name: 'Act for a customer' }).click()
    await page.getByRole('heading', { name: 'Act for a customer' }).waitFor()
    return page
  }
  const ask = async (page: Page, username: string) => {
    await page.getByLabel('Customer').fill(username)
    await page.getByLabel('Reason').fill('The invoice of <May>')
    await page.getByRole('button', { name: 'Ask' }).click()
  }
  const askPetra = async (page: Page) => {
    await ask(page, demo.data.privateCustomer.username)
    await page.getByRole('heading', { name: 'Petra Private is asked' }).waitFor()
    return (await page.locator('.number').textContent())!
  }
  const account = () => `${demo.issuerUrl}/account/impersonations`
  const atHome = async (options?: BrowserContextOptions) => {
    const page = await open(options)
    await page.goto(account())
    await signIn(page, demo.data.privateCustomer)
    await page.getByRole('heading', { level: 1, name: 'Acting for you' }).waitFor()
    return page
  }
  const allow = async (page: Page, number: string) => {
    await page.goto(account())
    if (await page.getByRole('link', { name: 'Confirm' }).count()) {
      await page.getByRole('link', { name: 'Confirm' }).first().click()
      await page.getByLabel('Password').fill(demo.data.privateCustomer.password)
      await page.locator('main').getByRole('button').last().click()
      await page.waitForURL(`${account()}*`)
    }
    await page.getByRole('button', { name: `Allow the request with the number ${number}` }).click()
    await page.getByRole('status').filter({ hasText: 'You have allowed it.' }).waitFor()
  }

  test('the customer is asked, sees who and why, allows it and ends it', async () => {
    const support = await atSupport()
    await picture(support, 'ask')
    const number = await askPetra(support)
    expect(await accessibilityProblems(support)).toEqual([])
    await picture(support, 'waiting')

    const petra = await atHome()
    await petra.getByRole('heading', { name: 'Sam Support asks to act in your name' }).waitFor()
    expect(await petra.locator('.number').textContent()).toBe(number)
    expect(await petra.locator('main').innerText()).toContain('The invoice of <May>')
    await allow(petra, number)

    // Its page goes on by itself.
    await support.getByText('Sam Support acts for Petra Private: The invoice of <May>').waitFor()
    expect(await support.locator('table').innerText()).toContain('Espresso machine')
    expect(await support.locator('pre').textContent()).toContain(`"x-auth-act": "${demo.data.agent.id}"`)
    expect(await accessibilityProblems(support)).toEqual([])
    await picture(support, 'acting')

    await petra.goto(account())
    await petra.getByRole('button', { name: 'End now: Sam Support' }).click()
    await petra.getByRole('status').filter({ hasText: 'It is ended.' }).waitFor()
    await support.getByRole('link', { name: 'Look again' }).click()
    await support.getByRole('alert').filter({ hasText: 'You act for Petra Private no longer' }).waitFor()
    expect(await support.locator('table').count()).toBe(0)
    await picture(support, 'ended')

    // On a telephone, in the dark, without scripts: by looking again.
    const phone = await atSupport(narrow)
    const another = await askPetra(phone)
    await picture(phone, 'waiting-320-dark')
    await phone.getByRole('link', { name: 'Look again' }).click()
    expect(await phone.locator('.number').textContent()).toBe(another)
    await allow(petra, another)
    await phone.getByRole('link', { name: 'Look again' }).click()
    await phone.getByText('Sam Support acts for Petra Private').waitFor()
    expect(await phone.evaluate('document.documentElement.scrollWidth')).toBe(320)
    await picture(phone, 'acting-320-dark')
    await phone.getByRole('button', { name: 'Stop acting for Petra Private' }).click()
    await phone.getByRole('heading', { name: 'Act for a customer' }).waitFor()
    await picture(phone, 'ask-320-dark')

    const third = await askPetra(phone)
    await petra.goto(account())
    await petra.getByRole('button', { name: `Refuse the request with the number ${third}` }).click()
    await petra.getByRole('status').filter({ hasText: 'You have refused it.' }).waitFor()
    await phone.getByRole('link', { name: 'Look again' }).click()
    await phone.getByRole('alert').filter({ hasText: 'Petra Private does not want it.' }).waitFor()
    // Nobody is asked a fourth time within an hour.
    await ask(phone, demo.data.privateCustomer.username)
    await phone.getByRole('alert').filter({ hasText: 'asked too often' }).waitFor()
    await picture(phone, 'refused-320-dark')
  })

  test('whom no rule protects is not asked, and only support acts for anybody', async () => {
    const support = await atSupport()
    await ask(support, 'nobody_at_all')
    await support.getByRole('alert').filter({ hasText: 'There is no customer nobody_at_all.' }).waitFor()
    expect(await support.getByLabel('Reason').inputValue()).toBe('The invoice of <May>')
    await ask(support, demo.data.customer.username)
    await support.getByText('Sam Support acts for Carla Customer').waitFor()

    // Nor does a page of another port in their browser.
    const form = { username: demo.data.customer.username, reason: 'none' }
    const foreign = { headers: { origin: 'http://127.0.0.1:9' }, form }
    expect((await support.request.post(`${demo.webUrl}/support`, foreign)).status()).toBe(403)

    const customer = await open()
    await customer.goto(`${demo.webUrl}/sign-in`)
    await signIn(customer, demo.data.customer)
    await customer.getByText('Signed in as').waitFor()
    expect(await customer.getByRole('link', { name: 'Act for a customer' }).count()).toBe(0)
    expect((await customer.goto(`${demo.webUrl}/support`))!.status()).toBe(403)
  })
})
