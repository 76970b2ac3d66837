import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { type ConsoleInChromium, signInOn, startConsoleInChromium } from '../support/console-in-chromium.ts'

/** The keys that sign, on their line of time. */

describe.skipIf(!chromium)('in Chromium', () => {
  let app: ConsoleInChromium
  beforeAll(async () => {
    app = await startConsoleInChromium()
  })
  afterAll(() => app?.close())

  test('an owner who signed in a while ago signs in again to rotate, and comes back to the dialog', async () => {
    const { api, sql } = app.home.issuer
    const owner = await app.home.createMember('owner')
    const visit = await app.signIn('/keys', { person: owner })
    const { page } = visit
    const tokens = page.getByRole('region', { name: 'Tokens', exact: true })
    await tokens.getByText('signs since').waitFor()
    await visit.expectUsable()
    await sql(`UPDATE authorizations SET authenticated_at = now() - interval '6 minutes' WHERE user_id = $1`, [
      owner.id,
    ])
    await sql(`UPDATE sessions SET authenticated_at = now() - interval '6 minutes' WHERE user_id = $1`, [owner.id])
    await sql('UPDATE console_sessions SET token_expires_at = now() WHERE user_id = $1', [owner.id])

    await tokens.getByRole('button', { name: 'Rotate…' }).click()
    await page.getByLabel('How').selectOption('At once: a key has leaked')
    await page.getByText('This ends every token signed so far').waitFor()
    await visit.expectUsable()
    await page.getByLabel('How').selectOption('One after the other: nobody notices')
    await page.getByRole('button', { name: 'Publish the next key' }).click()
    await signInOn(page, owner)
    await page.getByRole('button', { name: 'Publish the next key' }).click()
    await tokens.getByText('published; signs').waitFor()
    await visit.expectUsable()
    expect(
      (await api('GET', '/configs/oidc/private-keys')).body.map(({ status }: { status: string }) => status),
    ).toEqual(['Next', 'Current'])
    await visit.end()
  })

  test('a previous key goes before its time when its id is typed', async () => {
    const { api, sql } = app.home.issuer
    await sql(`UPDATE signing_keys SET state = 'retiring', expires_at = now() + interval '1 day' WHERE state = 'next'`)
    const visit = await app.signIn('/keys', { viewport: { width: 320, height: 640 } })
    const { page } = visit
    await page.getByRole('button', { name: 'Delete…' }).click()
    await page.getByText('people sign in again').waitFor()
    const name = await page.getByRole('alertdialog').locator('code').first().textContent()
    await page.getByLabel(/Type .* to confirm/).fill(name!)
    await visit.expectUsable()
    await page.getByRole('button', { name: 'Delete the key' }).click()
    await expect.poll(async () => (await api('GET', '/configs/oidc/private-keys')).body.length).toBe(1)
    await page.getByRole('alertdialog').waitFor({ state: 'detached' })
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    await visit.end()
  })

  test('an operator sees why keys are not for them', async () => {
    const visit = await app.signIn('/keys', { roles: ['operator'] })
    await visit.page.getByText('This needs the permission keys or all').waitFor()
    await visit.end()
  })
})
