import type { BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { totpCode } from '../support/factors.ts'
import { attachAuthenticator } from '../support/passkeys.ts'
import { type People, type PeopleClient, password, startPeople } from '../support/people.ts'

/** People who sign in to an application and look after their account, from one end to the other. */

describe.skipIf(!chromium)('in Chromium', () => {
  let people: People
  let client: PeopleClient
  beforeAll(async () => {
    people = await startPeople({ config: { host: 'localhost' } })
    client = await people.createClient({ isThirdParty: true })
    await people.issuer.api('PATCH', '/sign-in-exp', {
      mfa: { factors: ['Totp', 'WebAuthn', 'BackupCode'], policy: 'NoPrompt' },
      passkeySignIn: { enabled: true, showPasskeyButton: false, allowAutofill: true },
      sentinelPolicy: { maxAttempts: 4, lockoutDuration: 15 },
    })
  })
  afterAll(() => people?.close())

  const atShop = (url: URL) => url.origin === people.shop.url && url.searchParams.has('code')
  const createPerson = async (username: string) =>
    (await people.issuer.api('POST', '/users', { username, password, name: username })).body as { id: string }
  const open = async (options: BrowserContextOptions = {}) => {
    const context = await people.browser.newContext(options)
    return { context, page: await context.newPage() }
  }
  const enter = async (page: Page, username: string, entered = password) => {
    await page.locator('[name=identifier]').fill(username)
    await page.locator('[name=password]').fill(entered)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  }
  const account = (page: Page, path: string) => page.goto(`${people.issuer.baseUrl}/account/${path}`)
  /** Shows again who they are, before something is changed. */
  const confirm = async (page: Page, next: string) => {
    await account(page, `confirm?next=/account/${next}&with=password`)
    await page.locator('[name=password]').fill(password)
    await page.locator('[value=verify]').click()
    await page.waitForURL((url) => url.pathname === `/account/${next}`)
  }
  const allow = (page: Page) => page.getByRole('button', { name: 'Allow', exact: true }).click()

  test('journey 2: without JavaScript, a wrong password, the right one, the consent, and back with a code', async () => {
    await createPerson('grace')
    const { page, context } = await open({ javaScriptEnabled: false })
    await page.goto(client.authorizationUrl())
    await enter(page, 'grace', 'not the password')
    const summary = page.getByRole('alert')
    await summary.waitFor()
    expect(await page.title()).toMatch(/^Error: /)
    // It is read first: the page begins there.
    expect(await page.locator('[autofocus]').getAttribute('role')).toBe('alert')
    expect(await summary.getByRole('link').getAttribute('href')).toMatch(/^#(identifier|password)$/)
    expect(await page.locator('[name=identifier]').inputValue()).toBe('grace')
    expect(await page.locator('[name=password]').inputValue()).toBe('')
    await enter(page, 'grace')
    await page.getByText('Shop').first().waitFor()
    await allow(page)
    await page.waitForURL(atShop)
    expect((await client.redeem(new URL(page.url()).searchParams.get('code')!)).status).toBe(200)
    await context.close()
  })

  test('journey 3: a passkey is added, signs in from the list under the field, and is refused and forgotten when removed', async () => {
    const { id } = await createPerson('joan')
    const { page, context } = await open()
    await account(page, 'passkeys')
    await enter(page, 'joan')
    await page.waitForURL((url) => url.pathname === '/account/passkeys')
    // After the page has loaded: it answers at once.
    const { session, authenticatorId } = await attachAuthenticator(page)
    await confirm(page, 'passkeys')
    await page.locator('[value=new]').click()
    await page.getByRole('button', { name: 'Make a passkey' }).click()
    await page.getByText('Your passkey is added.').waitFor()
    const held = async () => (await session.send('WebAuthn.getCredentials', { authenticatorId })).credentials.length
    expect(await held()).toBe(1)

    await context.clearCookies()
    await page.goto(client.authorizationUrl())
    await allow(page)
    await page.waitForURL(atShop)
    const amr = async () =>
      (await people.issuer.sql('SELECT amr FROM sessions WHERE user_id = $1 ORDER BY created_at DESC LIMIT 1', [id]))[0]
    expect(await amr()).toEqual({ amr: ['pop', 'user', 'mfa'] })

    await confirm(page, 'passkeys')
    await page.getByRole('button', { name: /^Remove/ }).click()
    await page.getByText('You have no passkey.').waitFor()
    await context.clearCookies()
    // Until it stops answering, each page that says so asks it at once again.
    const refused = page.waitForResponse((response) => response.request().method() === 'POST')
    await page.goto(client.authorizationUrl())
    await refused
    await session.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled: false })
    await page.getByRole('alert').getByText('No passkey was accepted.').waitFor()
    // One more answer may be under way.
    await expect.poll(() => page.goto(client.authorizationUrl()).then(Boolean, () => false)).toBe(true)
    await enter(page, 'joan')
    await expect.poll(held).toBe(0)
    await context.close()
  })

  test('journey 4: an app and recovery codes are set up; a code counts once; too many wrong ones lock', async () => {
    await createPerson('hedy')
    const { page, context } = await open()
    await account(page, 'authenticator')
    await enter(page, 'hedy')
    await page.waitForURL((url) => url.pathname === '/account/authenticator')
    await confirm(page, 'authenticator')
    await page.locator('[value=new]').click()
    const secret = (await page.locator('.secret code').innerText()).replaceAll(/\s/g, '')
    await page.locator('[name=code]').fill(totpCode(secret))
    await page.locator('[value=verify]').click()
    await page.getByRole('heading', { name: 'Authenticator app' }).first().waitFor()
    await account(page, 'backup-codes')
    await page.locator('[value=new]').click()
    const codes = await page.locator('.codes code').allInnerTexts()
    expect(codes.length).toBeGreaterThanOrEqual(8)
    await page.locator('[value=keep]').click()

    const begin = async () => {
      await context.clearCookies()
      await page.goto(client.authorizationUrl())
      await enter(page, 'hedy')
    }
    const useBackup = async (code: string) => {
      await page.locator('summary').click()
      await page.getByRole('button', { name: 'Backup code' }).click()
      await page.getByLabel('Backup code').fill(code)
      await page.getByRole('button', { name: 'Continue' }).click()
    }
    await begin()
    // Not the code that set it up: that one counted.
    await page.getByLabel('Code from your authenticator app').fill(totpCode(secret, 1))
    await page.getByRole('button', { name: 'Continue' }).click()
    await allow(page)
    await page.waitForURL(atShop)

    await begin()
    await useBackup(codes[0]!)
    await page.waitForURL(atShop)
    await begin()
    await useBackup(codes[0]!)
    await page.getByRole('alert').waitFor()
    const ended = page.getByRole('heading', { name: 'This sign-in has ended' })
    for (let tries = 0; tries < 9 && (await ended.count()) === 0; tries++) {
      await page.getByLabel('Backup code').fill(`wrong ${tries}`)
      const answered = page.waitForResponse((response) => response.request().method() === 'POST')
      await page.getByRole('button', { name: 'Continue' }).click()
      await answered
      await page.waitForLoadState()
    }
    await ended.waitFor()
    await page.goto(client.authorizationUrl())
    await enter(page, 'hedy')
    // The right code is of no use either, until the lock ends.
    await useBackup(codes[1]!)
    await ended.waitFor()
    await context.close()
  })
})
