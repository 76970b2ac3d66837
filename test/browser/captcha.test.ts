import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createHmacs } from '../../issuer/base/hmac-keys-store.ts'
import { type Captcha, createCaptcha } from '../../issuer/captcha/captcha.ts'
import { captchaDefaults } from '../../issuer/captcha/captcha-settings.ts'
import { captchaAsset, findAsset, sendAsset } from '../../issuer/pages/assets.ts'
import { captchaField } from '../../issuer/pages/captcha.ts'
import { html } from '../../issuer/pages/html.ts'
import { page } from '../../issuer/pages/page.ts'
import { sayIn } from '../../issuer/pages/say.ts'
import { createEnvelope } from '../../platform/envelope.ts'
import { silentLogger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { chromium, startChromium } from '../support/chromium.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

/** The proof of work in a form of ours, solved by a real browser under the page's own content security policy. */

const use = { purpose: 'sign_in', context: 'interaction-1' }

test('the script fits in 1.5 kB', () => expect(captchaAsset.content.length).toBeLessThanOrEqual(1_500))

describe.skipIf(!chromium)('in Chromium', () => {
  let database: TestDatabase
  let browser: Browser
  beforeAll(async () => {
    database = await createTestDatabase()
    browser = await startChromium()
  })
  afterAll(async () => {
    await browser?.close()
    await database?.close()
  })

  const captchaOf = async (difficulty: number): Promise<Captcha> =>
    createCaptcha({
      query: database.database.query,
      hmac: await createHmacs(database.database, createEnvelope({ current: Buffer.alloc(32, 7), previous: undefined })),
      settings: { ...captchaDefaults, difficulty },
      logger: silentLogger,
      metrics: createMetrics(),
    })

  /** One page with a form; its POST says what came of the test, and what else was sent. */
  const site = async (difficulty: number, tamper: (script: string) => string = (script) => script) => {
    const captcha = await captchaOf(difficulty)
    const server = createServer(async (request, response) => {
      const asset = findAsset(request.url!)
      if (asset) return sendAsset(response, { ...asset, content: Buffer.from(tamper(asset.content.toString())) })
      if (request.method === 'POST') {
        const form = new URLSearchParams(await text(request))
        const outcome = await captcha.verify({ ...use, ip: '127.0.0.1', answer: form.get('captcha') ?? undefined })
        return response.setHeader('Content-Type', 'text/html').end(`<h1>${outcome} ${form.get('choice')}</h1>`)
      }
      const say = sayIn('en')
      const { field, allowed } = captchaField(say, captcha.challenge(use))
      const shown = page({
        locale: 'en',
        title: say('signIn'),
        form: 'leaving',
        ...allowed,
        body: html`<form method="post" action="/">${field}
<button name="choice" value="sign_in">Sign in</button><button name="choice" value="cancel">Cancel</button></form>`,
      })
      response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8', ...shown.headers }).end(shown.content)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    })
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  }

  const visit = async (url: string, options: { javaScriptEnabled?: boolean } = {}) => {
    const context = await browser.newContext(options)
    onTestFinished(() => context.close())
    const tab = await context.newPage()
    const problems: string[] = []
    tab.on('console', (message) => void (message.type() === 'error' && problems.push(message.text())))
    tab.on('pageerror', (error) => void problems.push(String(error)))
    await tab.goto(url)
    return { tab, problems, heading: () => tab.getByRole('heading').textContent() }
  }

  test('it is solved while the person types, and passes', async () => {
    const { tab, problems, heading } = await visit(await site(12))
    await expect.poll(() => tab.locator('[name=captcha]').inputValue()).not.toBe('')
    await tab.getByRole('button', { name: 'Sign in' }).click()
    expect(await heading()).toBe('passed sign_in')
    expect(problems.filter((problem) => !problem.includes('favicon'))).toEqual([])
  })

  test('a form that is sent at once waits for it, with the button that was pressed', async () => {
    const { tab, heading } = await visit(await site(16))
    await tab.getByRole('button', { name: 'Sign in' }).click()
    await tab.getByRole('heading').waitFor()
    expect(await heading()).toBe('passed sign_in')
  })

  test('looking for it does not hold the page up, says that it is looked for, and leaving goes without it', async () => {
    // So much that it is not found while this test runs.
    const { tab, heading } = await visit(await site(32))
    expect(await tab.getByRole('status').isVisible()).toBe(false)
    await tab.getByRole('button', { name: 'Sign in' }).click()
    await tab.getByText('Checking your browser…').waitFor()
    // Between two frames that the browser paints it still gets its turn.
    await tab.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
    await tab.getByRole('button', { name: 'Cancel' }).click()
    await tab.getByRole('heading').waitFor()
    expect(await heading()).toBe('missing cancel')
  })

  test('without scripts the page says what takes its place', async () => {
    const { tab, heading } = await visit(await site(12), { javaScriptEnabled: false })
    const text = tab.locator('noscript p')
    await text.waitFor()
    expect(await text.innerText()).toContain('sign in with a code that we send you by mail')
    await tab.getByRole('button', { name: 'Sign in' }).click()
    expect(await heading()).toBe('missing sign_in')
  })

  test('a script that is not ours does not run', async () => {
    const mark = randomBytes(4).toString('hex')
    const { tab, problems } = await visit(await site(4, () => `window.mark = "${mark}"`))
    expect(await tab.evaluate('window.mark')).toBeUndefined()
    expect(problems.join()).toContain('integrity')
  })
})
