import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { type ConsoleInChromium, startConsoleInChromium } from '../support/console-in-chromium.ts'

describe.skipIf(!chromium)('in Chromium', () => {
  let app: ConsoleInChromium
  beforeAll(async () => {
    app = await startConsoleInChromium()
  })
  afterAll(() => app?.close())
  const read = async (path: string) => (await app.home.issuer.api('GET', path)).body
  // The console's own people sign in by these settings too.
  afterEach(() =>
    app.home.issuer.api('PATCH', '/sign-in-exp', {
      signUp: { identifiers: ['username'], password: true, verify: false },
      mfa: { factors: [], policy: 'NoPrompt' },
    }),
  )

  test('one bar shows what differs, and saves it; what the server refuses stands there', async () => {
    const visit = await app.signIn('/sign-in-settings')
    const { page } = visit
    const bar = page.getByRole('region', { name: 'Changes that are not saved' })
    await page.getByLabel('Telephone number', { exact: true }).first().selectOption('off')
    await page.getByLabel('E-mail address', { exact: true }).first().selectOption('code or password')
    await page.getByRole('group', { name: 'A new account needs' }).getByLabel('E-mail address').check()
    expect(await bar.innerText()).toContain('User name → User name, E-mail address')
    await visit.expectUsable()
    await bar.getByRole('button', { name: 'Save' }).click()
    await bar.getByText('sign_in_experiences.passwordless_requires_verify').waitFor()
    await page.getByLabel('Addresses are proved by a code').check()
    await bar.getByRole('button', { name: 'Save' }).click()
    await bar.waitFor({ state: 'detached' })
    expect(await read('/sign-in-exp')).toMatchObject({
      signIn: {
        methods: [
          { identifier: 'username', password: true, verificationCode: false, isPasswordPrimary: true },
          { identifier: 'email', password: true, verificationCode: true, isPasswordPrimary: false },
        ],
      },
      signUp: { identifiers: ['username', 'email'], password: true, verify: true },
    })
    await visit.end()
  })

  test('passwords, factors, what people may do with their accounts, and lengths of sessions', async () => {
    const visit = await app.signIn('/sign-in-settings/security', { viewport: { width: 320, height: 700 } })
    const { page } = visit
    const bar = page.getByRole('region', { name: 'Changes that are not saved' })
    const save = async () => {
      await bar.getByRole('button', { name: 'Save' }).click()
      await bar.waitFor({ state: 'detached' })
    }
    await page.getByLabel('Shortest').fill('12')
    await page.getByRole('group', { name: 'People may use' }).getByLabel('Authenticator app').check()
    await page.getByLabel('Wrong passwords and codes that lock an account').fill('7')
    await save()
    const { passwordPolicy, mfa, sentinelPolicy } = await read('/sign-in-exp')
    expect([passwordPolicy.length, mfa.factors, sentinelPolicy]).toEqual([
      { min: 12, max: 256 },
      ['Totp'],
      { maxAttempts: 7, lockoutDuration: 15 },
    ])
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    await visit.expectUsable()
    await page.getByRole('link', { name: 'Account pages' }).click()
    await page.getByLabel('Deletion of the account').selectOption('Off')
    await save()
    expect((await read('/account-center')).fields).toMatchObject({ deletion: 'Off', name: 'Edit' })
    await visit.expectUsable()
    await page.getByRole('link', { name: 'Sessions' }).click()
    await page.getByLabel('Seconds without use').fill('3600')
    await save()
    expect(await read('/configs/oidc/session')).toMatchObject({ idleTtl: 3600 })
    await visit.end()
  })

  test('an auditor reads what an operator may change', async () => {
    const visit = await app.signIn('/sign-in-settings/security', { roles: ['auditor'] })
    const { page } = visit
    await page.getByText('This needs the permission sign-in or all').first().waitFor()
    expect(await page.getByLabel('Shortest').isEditable()).toBe(false)
    expect(await page.getByLabel('Authenticator app').isDisabled()).toBe(true)
    await visit.end()
  })
})
