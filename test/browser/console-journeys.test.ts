import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { operations } from '../../web/console/generated/operations.ts'
import { chromium } from '../support/chromium.ts'
import { type ConsoleInChromium, signInOn, startConsoleInChromium } from '../support/console-in-chromium.ts'

/** People who go through many pages of the console; other journeys are at the pages that they are about. */

describe.skipIf(!chromium)('in Chromium', () => {
  let app: ConsoleInChromium
  beforeAll(async () => {
    app = await startConsoleInChromium()
  })
  afterAll(() => app?.close())

  const api = async (method: string, path: string, body?: unknown) =>
    (await app.home.issuer.api(method, path, body)).body

  /** Presses Tab until what has the focus is called so. */
  const tabTo = async (page: Page, name: string) => {
    for (let count = 0; count < 60; count++) {
      await page.keyboard.press('Tab')
      const reached = await page.evaluate<string>(
        `(({ ariaLabel, labels, textContent }) => ariaLabel ?? labels?.[0]?.textContent ?? textContent)(document.activeElement)`,
      )
      if (reached.replace(' (optional)', '').trim().startsWith(name)) return
    }
    throw new Error(`Tab does not reach ${name}`)
  }
  const palette = async (page: Page, text: string, found = text) => {
    await page.keyboard.press('Control+k')
    await page.getByRole('dialog', { name: 'Search everything' }).waitFor()
    await page.keyboard.type(text)
    await page.locator('[role=menuitem][data-focused]').filter({ hasText: found }).waitFor()
    await page.keyboard.press('Enter')
  }
  const press = async (page: Page, name: string) => {
    await tabTo(page, name)
    await page.keyboard.press('Enter')
  }
  const fill = async (page: Page, values: Readonly<Record<string, string>>) => {
    for (const [name, value] of Object.entries(values)) {
      await tabTo(page, name)
      await page.keyboard.type(value)
    }
  }
  /** Chooses it in the dialog behind `Add`. */
  const add = async (page: Page, name: string) => {
    await press(page, 'Add')
    await page.getByRole('checkbox', { name: new RegExp(name) }).waitFor()
    await tabTo(page, name)
    await page.keyboard.press('Space')
    await press(page, 'Add')
  }

  test('journey 5: an operator gives somebody a right by the keyboard alone, sees it, and takes it back', async () => {
    const user = await api('POST', '/users', { username: 'grace', name: 'Grace Hopper' })
    const visit = await app.signIn('/', { roles: ['operator'] })
    const { page } = visit
    await page.getByRole('heading', { level: 1 }).waitFor()

    await palette(page, 'new resource', 'New resource')
    await page.getByRole('heading', { name: 'New resource' }).waitFor()
    await fill(page, { Name: 'Orders', Indicator: 'https://orders.example.test' })
    await page.keyboard.press('Enter')
    await page.getByText('No permissions yet').waitFor()
    await press(page, 'New permission')
    await page.getByRole('dialog', { name: 'New permission' }).waitFor()
    await fill(page, { Name: 'read:orders' })
    await page.keyboard.press('Enter')
    await page.getByRole('rowheader', { name: 'read:orders' }).waitFor()

    await palette(page, 'new role', 'New role')
    await page.getByRole('heading', { name: 'New role' }).waitFor()
    await fill(page, { Name: 'Order reader', Description: 'Reads orders' })
    await page.keyboard.press('Control+s')
    await page.getByText('It carries no permission yet.').waitFor()
    await fill(page, { 'To add from': 'Orders' })
    await add(page, 'read:orders')
    await page.getByRole('button', { name: 'Take away the permission read:orders' }).waitFor()

    await palette(page, 'Hopper', 'Grace Hopper')
    await page.getByRole('heading', { name: 'Grace Hopper' }).waitFor()
    await press(page, 'Roles')
    await page.waitForURL(/\/roles$/)
    await add(page, 'Order reader')
    await page.getByRole('link', { name: 'Order reader' }).waitFor()

    // What it comes to.
    await press(page, 'Rights')
    await page.getByRole('region', { name: 'Orders' }).getByText('read:orders').waitFor()
    await visit.expectUsable()
    await press(page, 'Roles')
    await press(page, 'Take away the role Order reader')
    await page.getByText('The role Order reader is taken away.').first().waitFor()
    expect(await api('GET', `/users/${user.id}/roles`)).toEqual([])
    await press(page, 'Undo')
    await page.getByRole('link', { name: 'Order reader' }).waitFor()
    expect(await api('GET', `/users/${user.id}/roles`)).toHaveLength(1)
    await visit.end()
  })

  test('journey 10: an auditor reads all but secrets, forges in vain, and finds who rotated the keys', async () => {
    const visit = await app.signIn('/', { roles: ['auditor'] })
    const { page } = visit
    await page.getByRole('heading', { level: 1 }).waitFor()
    const refused: string[] = []
    page.on('response', (response) => response.status() === 403 && refused.push(response.url()))
    const links = await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').all()
    expect(links.length).toBeGreaterThan(15)
    for (const link of links) {
      await link.click()
      await page.locator('h1').waitFor()
      await expect.poll(() => page.getByRole('status', { name: 'Loading' }).count()).toBe(0)
      // What can be pressed changes nothing: it opens, copies or filters.
      const buttons = page.locator('main button:not([aria-disabled=true])')
      for (const name of await buttons.allTextContents())
        expect(name).not.toMatch(/^(Delete|New|Add|Save|Rotate|Create)/)
    }
    // No page asks for what it cannot get.
    expect(refused).toEqual([])

    // Calls that the page does not offer, made from the page itself.
    const forbidden = Object.values(operations).filter(({ scopes }) => !(scopes as readonly string[]).includes('read'))
    expect(forbidden.length).toBeGreaterThan(100)
    const before = await api('GET', '/users?page=1&page_size=1')
    const answers = await page.evaluate<[string, number][]>(`Promise.all(${JSON.stringify(forbidden)}.map(
      async ({ id, method, path }) => {
        const { status } = await fetch('/console/api' + path.replace(/:\\w+/g, 'forged'), {
          method,
          ...(method !== 'GET' && { headers: { 'content-type': 'application/json' } }),
          ...(!['GET', 'DELETE'].includes(method) && { body: '{}' }),
        })
        return [id, status]
      }))`)
    expect(answers.filter(([, status]) => status !== 403)).toEqual([])
    expect(await api('GET', '/users?page=1&page_size=1')).toEqual(before)
    await visit.expectUsable()

    const owner = await app.home.createMember('owner')
    const other = await app.signIn('/keys', { person: owner })
    const { sql } = app.home.issuer
    const anHourAgo = `authenticated_at = authenticated_at - interval '1 hour'`
    await sql(`UPDATE authorizations SET ${anHourAgo} WHERE user_id = $1`, [owner.id])
    await sql(`UPDATE sessions SET ${anHourAgo} WHERE user_id = $1`, [owner.id])
    await sql('UPDATE console_sessions SET token_expires_at = now() WHERE user_id = $1', [owner.id])
    const tokens = other.page.getByRole('region', { name: 'Tokens', exact: true })
    await tokens.getByRole('button', { name: 'Rotate…' }).click()
    await other.page.getByRole('button', { name: 'Publish the next key' }).click()
    await signInOn(other.page, owner)
    await other.page.getByRole('button', { name: 'Publish the next key' }).click()
    await tokens.getByText('published; signs').waitFor()
    await other.end()

    await visit.goTo(`/audit?personId=${owner.id}&result=Success`)
    await page.getByRole('link', { name: /rotate/i }).click()
    await page.getByRole('link', { name: owner.id }).or(page.getByText(owner.id)).first().waitFor()
    await visit.end()
  })
})
