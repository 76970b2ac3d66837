import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { factorsOf, totpCode } from '../support/factors.ts'
import {
  accessibilityProblems,
  atTheApplication,
  type PagesInChromium,
  startPagesInChromium,
} from '../support/pages-in-chromium.ts'
import { attachAuthenticator } from '../support/passkeys.ts'
import { experienceWith, type TestPerson } from '../support/sign-in.ts'

/** Second factors and what else stands between a password and the application, as a real browser meets them. */

describe.skipIf(!chromium)('in Chromium', () => {
  let pages: PagesInChromium
  let give: Awaited<ReturnType<typeof factorsOf>>
  beforeAll(async () => {
    pages = await startPagesInChromium({ sends: 'outbox' })
    give = await factorsOf(pages.signIn)
  })
  afterAll(() => pages?.close())

  const withFactors = (factors: readonly string[], policy: string, more: object = {}) => {
    pages.signIn.settings = experienceWith({ mfa: { factors, policy }, ...more })
  }
  beforeEach(() => withFactors(['WebAuthn', 'Totp', 'BackupCode'], 'NoPrompt'))

  const enter = async (page: Page, person: TestPerson) => {
    await page.goto(pages.authorizationUrl())
    await page.locator('#identifier').fill(person.username)
    await page.locator('#password').fill(person.password)
    await page.locator('button[value=sign_in]').click()
  }
  const acrOf = async (person: TestPerson) => {
    const [row] = await pages.signIn.sql<{ acr: string }>(
      'SELECT acr FROM sessions WHERE user_id = $1 ORDER BY created_at DESC LIMIT 1',
      [person.id],
    )
    return row?.acr
  }

  test.each([true, false])('a code of an app and a backup code, with scripts: %s', async (javaScriptEnabled) => {
    const person = await pages.signIn.createPerson()
    const secret = await give.totp(person.id)
    const [backup] = await give.backupCodes(person.id)
    const { page, context } = await pages.open({ javaScriptEnabled })
    await enter(page, person)
    const code = page.getByLabel('Code from your authenticator app')
    await code.fill(totpCode(secret, 500))
    await page.keyboard.press('Enter')
    await page.getByRole('alert').getByRole('link').click()
    await code.fill(totpCode(secret))
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.waitForURL(atTheApplication)
    expect(await acrOf(person)).toBe('urn:surrogate:acr:mfa')

    await context.clearCookies()
    await enter(page, person)
    await page.locator('summary').click()
    await page.getByRole('button', { name: 'Backup code' }).click()
    await page.getByLabel('Backup code').fill(backup!)
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.waitForURL(atTheApplication)
    await context.close()
  })

  test('a passkey is made, with backup codes, and is the second factor from then on', async () => {
    withFactors(['WebAuthn', 'Totp', 'BackupCode'], 'Mandatory')
    const person = await pages.signIn.createPerson()
    const { page, context } = await pages.open()
    await attachAuthenticator(page)
    const refused: string[] = []
    page.on('console', (message) => message.text().includes('Content Security') && refused.push(message.text()))
    await enter(page, person)
    await page.getByRole('button', { name: 'Passkey' }).click()
    await page.getByRole('button', { name: 'Make a passkey' }).click()
    await page.getByRole('heading', { name: 'Keep your backup codes' }).waitFor()
    await page.getByRole('button', { name: 'I have kept them' }).click()
    await page.waitForURL(atTheApplication)
    // Making one proved nothing.
    expect(await acrOf(person)).toBe('urn:surrogate:acr:basic')

    await context.clearCookies()
    await enter(page, person)
    await page.getByRole('button', { name: 'Use your passkey' }).click()
    await page.waitForURL(atTheApplication)
    expect(await acrOf(person)).toBe('urn:surrogate:acr:phr')
    expect(refused).toEqual([])
    await context.close()
  })

  test('without scripts nobody is shown a button that does nothing', async () => {
    withFactors(['WebAuthn', 'Totp'], 'Mandatory')
    const person = await pages.signIn.createPerson()
    const { page, context } = await pages.open({ javaScriptEnabled: false })
    await enter(page, person)
    await page.getByRole('button', { name: 'Authenticator app' }).waitFor()
    expect(await page.getByRole('button', { name: 'Passkey' }).count()).toBe(0)
    await page.getByRole('button', { name: 'Authenticator app' }).click()
    const secret = (await page.locator('.secret code').innerText()).replaceAll(/\s/g, '')
    await page.getByLabel('Code that the app shows now').fill(totpCode(secret))
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.waitForURL(atTheApplication)
    await context.close()
  })

  test('the keyboard alone sets up an app, after a mistake too', async () => {
    withFactors(['Totp', 'EmailVerificationCode'], 'PromptAtSignInAndSignUp')
    const person = await pages.signIn.createPerson()
    await pages.signIn.sql('UPDATE users SET email_verified_at = NULL WHERE id = $1', [person.id])
    const { page, context } = await pages.open()
    await enter(page, person)
    await page.getByRole('heading', { name: 'Protect your account' }).waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Set up your authenticator app' }).waitFor()
    const secret = (await page.locator('.secret code').innerText()).replaceAll(/\s/g, '')
    await page.keyboard.type('000')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.keyboard.type(totpCode(secret))
    await page.keyboard.press('Enter')
    await page.waitForURL(atTheApplication)
    await context.close()
  })

  test.each([
    ['a large screen in the light', { viewport: { width: 1280, height: 900 }, colorScheme: 'light' }],
    ['a small telephone in the dark', { viewport: { width: 320, height: 640 }, colorScheme: 'dark' }],
    ['a magnification of 200 %', { viewport: { width: 640, height: 360 }, deviceScaleFactor: 2 }],
  ] as const)('whoever sees little can use every page on %s', async (_name, options) => {
    withFactors(['WebAuthn', 'Totp', 'BackupCode', 'EmailVerificationCode', 'PhoneVerificationCode'], 'Mandatory', {
      ...{ agreeToTermsPolicy: 'Manual', termsOfUseUrl: 'https://shop.example.test/terms' },
    })
    const person = await pages.signIn.createPerson()
    await pages.signIn.sql('UPDATE users SET email_verified_at = NULL WHERE id = $1', [person.id])
    const { page, context } = await pages.open(options)
    await attachAuthenticator(page)
    const check = async (heading: string) => {
      await page.getByRole('heading', { name: heading }).waitFor()
      expect(await accessibilityProblems(page), heading).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth'), heading).toBe(options.viewport.width)
    }
    await enter(page, person)
    await check('Protect your account')
    await page.getByRole('button', { name: 'Code by email' }).click()
    await check('Add your email address')
    await page.getByRole('button', { name: 'Choose another way' }).click()
    await page.getByRole('button', { name: 'Authenticator app' }).click()
    await check('Set up your authenticator app')
    await page.getByRole('button', { name: 'Choose another way' }).click()
    await page.getByRole('button', { name: 'Passkey' }).click()
    await check('Make a passkey')
    await page.getByRole('button', { name: 'Make a passkey' }).click()
    await check('Keep your backup codes')
    await page.getByRole('button', { name: 'I have kept them' }).click()
    await check('Before you go on')
    await page.getByRole('button', { name: 'Agree and continue' }).click()
    await page.waitForURL(atTheApplication)
    await give.totp(person.id)
    await context.clearCookies()
    await enter(page, person)
    await check('Confirm that it is you')
    for (const way of ['Authenticator app', 'Backup code']) {
      await page.locator('summary').click()
      await check('Confirm that it is you')
      await page.getByRole('button', { name: way }).click()
      await page.getByRole('button', { name: 'Continue' }).click()
      await page.getByRole('alert').waitFor()
      await check('Confirm that it is you')
    }
    await context.close()
  })
})
