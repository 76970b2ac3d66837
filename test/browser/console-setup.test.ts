import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { inviteFirstOwner, inviteToConsole } from '../../issuer/console/invitations.ts'
import { chromium } from '../support/chromium.ts'
import { type ConsoleInChromium, startConsoleInChromium } from '../support/console-in-chromium.ts'
import { attachAuthenticator } from '../support/passkeys.ts'

/** The link that a start or an invitation prints, opened by a person. */

describe.skipIf(!chromium)('in Chromium', () => {
  let app: ConsoleInChromium
  beforeAll(async () => {
    app = await startConsoleInChromium()
  })
  afterAll(() => app?.close())

  const linkOf = async (link: Promise<string | undefined>) => (await link)!.replace(/^.*\/console/, '')

  test('journey 1: the first owner makes a passkey, sees what comes next; the link again, and one that is late, are refused', async () => {
    const { query } = app.home.issuer.database
    const link = await linkOf(inviteFirstOwner(query, app.home.issuer.baseUrl))
    const visit = await app.open()
    await visit.goTo(link)
    await attachAuthenticator(visit.page)
    await visit.page.getByRole('heading', { name: 'Become the owner of this console' }).waitFor()
    await visit.expectUsable()
    await visit.page.getByLabel('Your name').fill('Ada Lovelace')
    await visit.page.getByLabel('Your e-mail address').fill('ada@example.test')
    await visit.page.getByRole('button', { name: 'Continue with a passkey' }).click()
    await visit.page.getByRole('heading', { name: 'Hello, Ada Lovelace' }).waitFor()
    expect(await visit.page.getByRole('button', { name: /Ada Lovelace/ }).textContent()).toContain('owner')
    const steps = visit.page.getByRole('region', { name: 'Getting started: 0 of 5' }).getByRole('listitem')
    const titles = ['Register your API', 'Choose the default resource', 'Make an application', 'Have users']
    for (const title of [...titles, 'Hear of changes']) await steps.getByRole('link', { name: title }).waitFor()
    await visit.end()

    const late = await linkOf(inviteToConsole(query, { role: 'owner', consoleUrl: app.home.issuer.baseUrl }))
    await app.home.issuer.sql(`UPDATE console_invitations SET expires_at = now() - interval '1 second'`)
    const second = await app.open()
    for (const refused of [link, late]) {
      await second.page.goto('about:blank')
      await second.goTo(refused)
      await second.page.getByRole('heading', { name: 'This link does not work' }).waitFor()
      expect(await second.page.getByRole('alert').textContent()).toContain('console.invitation_not_valid')
    }
    await second.end()
  })

  test('an invited auditor takes a password; what the server refuses stands at the field', async () => {
    const invitation = inviteToConsole(app.home.issuer.database.query, {
      role: 'auditor',
      consoleUrl: app.home.issuer.baseUrl,
    })
    const visit = await app.open({ viewport: { width: 320, height: 640 } })
    await visit.goTo(await linkOf(invitation))
    const { page } = visit
    await page.getByRole('heading', { name: 'Join this console as auditor' }).waitFor()
    await page.getByRole('button', { name: 'Use a password instead' }).click()
    await page.getByLabel('Your name').fill('Grace')
    await page.getByLabel('Your e-mail address').fill('not an address')
    await page.getByLabel('Password', { exact: true }).fill('a password of mine, long enough')
    await page.getByRole('button', { name: 'Continue with the password' }).click()
    await page.locator('#console [aria-invalid=true]').waitFor()
    expect(await page.locator('[aria-invalid=true]').getAttribute('name')).toBe('primaryEmail')
    await visit.expectUsable()
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    await page.getByLabel('Your e-mail address').fill('grace@example.test')
    await page.getByRole('button', { name: 'Continue with the password' }).click()
    await page.waitForURL(`${app.home.issuer.baseUrl}/console/`)
    await visit.end()
  })
})
