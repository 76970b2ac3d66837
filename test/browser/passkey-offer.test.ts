import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import {
  accessibilityProblems,
  atTheApplication,
  type PagesInChromium,
  startPagesInChromium,
} from '../support/pages-in-chromium.ts'
import { attachAuthenticator } from '../support/passkeys.ts'
import { experienceWith, type TestPerson } from '../support/sign-in.ts'

/** The offer of a passkey after a password, in Chromium with an authenticator that it plays. */

describe.skipIf(!chromium)('in Chromium', () => {
  let pages: PagesInChromium
  beforeAll(async () => {
    pages = await startPagesInChromium()
  })
  afterAll(() => pages?.close())
  beforeEach(() => {
    pages.signIn.settings = experienceWith({ passkeySignIn: { enabled: true, allowAutofill: false } })
  })

  const fill = async (page: Page, person: TestPerson) => {
    await page.locator('#identifier').fill(person.username)
    await page.locator('#password').fill(person.password)
    await page.locator('button[value=sign_in]').click()
  }
  const enter = async (page: Page, person: TestPerson) => {
    await page.goto(pages.authorizationUrl())
    // What the script finds out takes a moment, which people do not notice.
    await page.locator('[name=makesPasskeys][value=yes]').waitFor({ state: 'attached' })
    await fill(page, person)
  }
  const offer = (page: Page) => page.getByRole('heading', { name: 'Sign in faster next time' })
  const passkeysOf = ({ id }: TestPerson) => pages.signIn.sql('SELECT FROM passkeys WHERE user_id = $1', [id])

  test('the offer makes a passkey, and the passkey signs in', async () => {
    const person = await pages.signIn.createPerson()
    const { page, context } = await pages.open()
    await attachAuthenticator(page)
    const refused: string[] = []
    page.on('console', (message) => message.type() === 'error' && refused.push(message.text()))
    await enter(page, person)
    // The browser tries by itself first, and waits: the button ends that.
    await page.getByRole('button', { name: 'Create a passkey' }).click()
    await page.waitForURL(atTheApplication)
    expect(await passkeysOf(person)).toHaveLength(1)

    await context.clearCookies()
    await page.goto(pages.authorizationUrl())
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.waitForURL(atTheApplication)
    expect(refused).toEqual([])
    await context.close()
  })

  // Chromium's own authenticator never makes one by itself: it has no password manager.
  test('a browser that makes one by itself is asked to, without a question, and the sign-in goes on', async () => {
    const person = await pages.signIn.createPerson()
    const { page, context } = await pages.open()
    await attachAuthenticator(page)
    await page.addInitScript(`{
      const create = navigator.credentials.create.bind(navigator.credentials)
      navigator.credentials.create = ({ mediation, publicKey, signal }) => {
        const { userVerification } = publicKey.authenticatorSelection
        if (mediation !== 'conditional' || userVerification !== 'preferred') return Promise.reject(new Error())
        return create({ publicKey, signal })
      }
    }`)
    await enter(page, person)
    await page.waitForURL(atTheApplication)
    expect(await passkeysOf(person)).toHaveLength(1)
    await context.close()
  })

  test('nothing is said when the browser does not make one by itself, and something when the person tried', async () => {
    const person = await pages.signIn.createPerson()
    const { page, context } = await pages.open()
    await attachAuthenticator(page)
    const asked = `navigator.credentials.create = ({ mediation }) => {
      document.body.dataset.asked = mediation
      return Promise.reject(new DOMException('', 'NotAllowedError'))
    }`
    await page.addInitScript(asked)
    await enter(page, person)
    await page.locator('body[data-asked=conditional]').waitFor()
    expect(await page.getByText('No passkey was made.').isVisible()).toBe(false)
    await page.getByRole('button', { name: 'Create a passkey' }).click()
    await page.getByText('No passkey was made.').waitFor()
    await page.getByRole('button', { name: 'Not now' }).click()
    await page.waitForURL(atTheApplication)
    expect(await passkeysOf(person)).toEqual([])
    await context.close()
  })

  test('the browser forgets a passkey that was removed here', async () => {
    const person = await pages.signIn.createPerson()
    const { page, context } = await pages.open()
    const { session, authenticatorId } = await attachAuthenticator(page)
    const held = async () => (await session.send('WebAuthn.getCredentials', { authenticatorId })).credentials.length
    await enter(page, person)
    await page.getByRole('button', { name: 'Create a passkey' }).click()
    await page.waitForURL(atTheApplication)
    expect(await held()).toBe(1)
    await pages.signIn.sql('DELETE FROM passkeys WHERE user_id = $1', [person.id])
    await context.clearCookies()
    await enter(page, person)
    await offer(page).waitFor()
    await expect.poll(held).toBe(0)
    await context.close()
  })

  test.each([
    ['without scripts', { javaScriptEnabled: false }],
    ['without a place to keep one', {}],
  ])('a browser %s is never shown it', async (_name, options) => {
    const person = await pages.signIn.createPerson()
    const { page, context } = await pages.open(options)
    await page.goto(pages.authorizationUrl())
    if (!('javaScriptEnabled' in options))
      expect(await page.evaluate('PublicKeyCredential.isUserVerifyingPlatformAuthenticatorAvailable()')).toBe(false)
    await fill(page, person)
    await page.waitForURL(atTheApplication)
    await context.close()
  })

  test('the keyboard alone answers it, and it is not shown again', async () => {
    const person = await pages.signIn.createPerson()
    const { page, context } = await pages.open()
    await attachAuthenticator(page)
    await enter(page, person)
    await offer(page).waitFor()
    await page.getByRole('button', { name: 'Create a passkey' }).waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Not now')
    await page.keyboard.press('Enter')
    await page.waitForURL(atTheApplication)
    await context.clearCookies()
    await enter(page, person)
    await page.waitForURL(atTheApplication)
    await context.close()
  })

  test.each([
    ['a large screen in the light', { viewport: { width: 1280, height: 900 }, colorScheme: 'light' }],
    ['a small telephone in the dark', { viewport: { width: 320, height: 640 }, colorScheme: 'dark' }],
  ] as const)('whoever sees little can use it on %s', async (_name, options) => {
    const person = await pages.signIn.createPerson()
    const { page, context } = await pages.open(options)
    await attachAuthenticator(page)
    await enter(page, person)
    await page.getByRole('button', { name: 'Create a passkey' }).waitFor()
    expect(await accessibilityProblems(page)).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(options.viewport.width)
    await context.close()
  })
})
