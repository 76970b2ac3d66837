import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { type ConsoleInChromium, signInOn, startConsoleInChromium } from '../support/console-in-chromium.ts'

/** The script that adds claims to tokens, written and tried out in the console. */

describe.skipIf(!chromium)('in Chromium', () => {
  let app: ConsoleInChromium
  beforeAll(async () => {
    app = await startConsoleInChromium()
  })
  afterAll(() => app?.close())

  const script = 'const getCustomJwtClaims = ({ context }) => ({ plan: context.user.customData.plan })'

  test('a script is completed from the types, tried on a real user, and saved with a diff', async () => {
    const { api } = app.home.issuer
    const ada = await app.home.flow.createPerson()
    await api('POST', '/applications', { name: 'Shop', type: 'SPA' })
    await api('PATCH', `/users/${ada.id}`, { customData: { plan: 'gold' } })
    const visit = await app.signIn('/claims')
    const { page } = visit
    await page.getByRole('button', { name: 'Begin with an empty script' }).click()
    const editor = page.getByRole('textbox', { name: 'Script' })
    await editor.waitFor()
    await visit.expectUsable()

    await editor.click()
    await page.keyboard.press('Control+a')
    await page.keyboard.type('const getCustomJwtClaims = ({ context }) => ({ plan: context.user.cust')
    await page.getByRole('option', { name: /customData/ }).waitFor()
    await visit.expectUsable()
    await page.keyboard.press('Escape')
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText(script)

    await page.getByLabel('User').fill(ada.username)
    await page.getByRole('button', { name: 'Run it' }).click()
    await page.getByText('It adds plan.').waitFor()
    expect(await page.getByRole('region', { name: 'token before' }).textContent()).not.toContain('gold')
    expect(JSON.parse((await page.getByRole('region', { name: 'token after' }).textContent())!)).toMatchObject({
      ...{ accountId: ada.id, plan: 'gold' },
    })
    await visit.expectUsable()
    await page.getByRole('region', { name: 'Changes that are not saved' }).getByText('customData.plan').waitFor()
    await page.getByRole('button', { name: 'Save' }).click()
    await expect.poll(async () => (await api('GET', '/configs/jwt-customizer/access-token')).body.script).toBe(script)
    await page.getByText('Saved.').waitFor({ state: 'attached' })
    await expect.poll(() => editor.textContent()).toBe(script)
    await page.getByRole('region', { name: 'Changes that are not saved' }).waitFor({ state: 'detached' })
    await visit.end()
  })

  test('what was typed is still there after the sign-in that saving wants', async () => {
    const { api, sql } = app.home.issuer
    await api('PUT', '/configs/jwt-customizer/client-credentials', {
      script: 'const getCustomJwtClaims = () => ({})',
    })
    const owner = await app.home.createMember('owner')
    const visit = await app.signIn('/claims/client-credentials', {
      person: owner,
      viewport: { width: 320, height: 640 },
    })
    const { page } = visit
    const editor = page.getByRole('textbox', { name: 'Script' })
    await editor.click()
    await page.keyboard.press('Control+a')
    await page.keyboard.insertText('const getCustomJwtClaims = () => ({ tier: 1 })')
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
    for (const table of ['authorizations', 'sessions'])
      await sql(`UPDATE ${table} SET authenticated_at = now() - interval '6 minutes' WHERE user_id = $1`, [owner.id])
    await sql('UPDATE console_sessions SET token_expires_at = now() WHERE user_id = $1', [owner.id])
    await page.getByRole('button', { name: 'Save' }).click()
    await signInOn(page, owner)
    await page.getByText('You typed this before').waitFor()
    await page.getByRole('button', { name: 'Save' }).click()
    await expect
      .poll(async () => (await api('GET', '/configs/jwt-customizer/client-credentials')).body.script)
      .toContain('tier')
    await page.getByRole('region', { name: 'Changes that are not saved' }).waitFor({ state: 'detached' })
    await visit.end()
  })
})
