import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { type ConsoleInChromium, signInOn, startConsoleInChromium } from '../support/console-in-chromium.ts'

/** Names of people who write from right to left, and people who have the console open twice. */

describe.skipIf(!chromium)('in Chromium', () => {
  let app: ConsoleInChromium
  beforeAll(async () => {
    app = await startConsoleInChromium()
  })
  afterAll(() => app?.close())

  const api = async (method: string, path: string, body?: unknown) =>
    (await app.home.issuer.api(method, path, body)).body

  describe('from right to left', () => {
    const layla = 'ليلى الخوارزمي!'
    const dana = 'דנה (Cohen)'

    /** Where a text, and a part of it, stands within what the selector finds: from the left, in pixels. */
    const placeOf = async (page: Page, selector: string, part: string): Promise<{ left: number; right: number }> => {
      const place = await page.evaluate<{ left: number; right: number } | undefined>(`(() => {
        const texts = document.createTreeWalker(document.querySelector(${JSON.stringify(selector)}), NodeFilter.SHOW_TEXT)
        for (let text = texts.nextNode(); text; text = texts.nextNode()) {
          const start = text.data.indexOf(${JSON.stringify(part)})
          if (start < 0) continue
          const range = document.createRange()
          range.setStart(text, start)
          range.setEnd(text, start + ${part.length})
          const { left, right } = range.getBoundingClientRect()
          return { left, right }
        }
      })()`)
      if (!place) throw new Error(`${selector} has no ${part}`)
      return place
    }
    /** Each of these ends where the next one begins, or before. */
    const expectInOrder = async (page: Page, selector: string, ...parts: string[]) => {
      const places = []
      for (const part of parts) places.push(await placeOf(page, selector, part))
      for (const [index, { right }] of places.slice(0, -1).entries())
        expect(right, `${parts[index]} before ${parts[index + 1]}`).toBeLessThanOrEqual(places[index + 1]!.left + 1)
    }

    let ids: Record<'layla' | 'dana' | 'role', string>
    beforeAll(async () => {
      const one = await api('POST', '/users', { username: 'layla', name: layla, primaryEmail: 'layla@example.test' })
      const other = await api('POST', '/users', { username: 'dana', name: dana })
      await api('PATCH', `/users/${one.id}/is-suspended`, { isSuspended: true })
      const role = await api('POST', '/roles', { name: 'مدير (2)', description: 'יועץ, from 9 to 5' })
      await api('POST', `/users/${one.id}/roles`, { roleIds: [role.id] })
      ids = { layla: one.id, dana: other.id, role: role.id }
    })

    test('in a list names are in their own order, and what stands beside them keeps its place', async () => {
      const visit = await app.signIn('/users')
      const { page } = visit
      const row = (id: string) => `tr:has([href$="/users/${id}"])`
      await page.getByRole('link', { name: layla }).waitFor()
      await expectInOrder(page, row(ids.layla), '!', 'ليلى', 'suspended', 'layla@example.test')
      await expectInOrder(page, row(ids.dana), 'Cohen', 'דנה', 'dana')
      // All names of the column begin at one line.
      const lefts = await page.evaluate<number[]>(
        `[...document.querySelectorAll('tbody th bdi')].map((name) => name.getBoundingClientRect().left)`,
      )
      expect(new Set(lefts).size).toBe(1)
      await page.keyboard.press('Control+k')
      await page.getByRole('dialog', { name: 'Search everything' }).waitFor()
      await page.keyboard.type('الخوارزمي')
      await page.getByRole('menuitem').filter({ hasText: layla }).waitFor()
      await expectInOrder(page, '[role=menuitem]', '!', 'ليلى', 'User', 'layla@example.test')
      await visit.end()
    })

    test('a title, a field and a difference are as they are written', async () => {
      const visit = await app.signIn(`/users/${ids.layla}`)
      const { page } = visit
      await page.getByRole('heading', { name: layla }).waitFor()
      await expectInOrder(page, 'h1', '!', 'الخوارزمي', 'ليلى')
      const directionOf = (name: string) =>
        page.evaluate(`getComputedStyle(document.querySelector('[name=${name}]')).direction`)
      expect(await directionOf('name')).toBe('rtl')
      expect(await directionOf('primaryEmail')).toBe('ltr')
      await page.locator('[name=name]').fill('ליאור!')
      await page.getByRole('region', { name: 'Changes that are not saved' }).waitFor()
      await expectInOrder(page, 'section[aria-label="Changes that are not saved"]', 'ليلى', '→', 'ליאור')
      await expectInOrder(page, 'section[aria-label="Changes that are not saved"] ins', '!', 'ליאור')
      await visit.expectUsable()
      await page.getByRole('button', { name: 'Discard' }).click()
      await page.getByRole('link', { name: 'Roles', exact: true }).last().click()
      await page.getByRole('link', { name: 'مدير (2)' }).waitFor()
      await expectInOrder(page, 'ul[aria-label=Roles] b', '(2)', 'مدير')
      await visit.end()
    })

    test('nothing is wider than 320 pixels', async () => {
      const visit = await app.signIn('/users', { viewport: { width: 320, height: 640 } })
      const { page } = visit
      for (const path of [
        '/users',
        `/users/${ids.layla}`,
        `/users/${ids.layla}/roles`,
        `/roles/${ids.role}`,
        '/roles',
      ]) {
        await visit.goTo(path)
        await page.locator('h1').waitFor()
        await expect.poll(() => page.getByRole('status', { name: 'Loading' }).count()).toBe(0)
        expect([path, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([path, 320])
      }
      await visit.end()
    })
  })

  describe('two tabs of one person', () => {
    const secondTab = async (page: Page, path: string) => {
      const tab = await page.context().newPage()
      await tab.goto(`${app.home.issuer.baseUrl}/console${path}`)
      await tab.locator('h1').waitFor()
      return tab
    }
    const save = (page: Page) => page.getByRole('button', { name: 'Save', exact: true }).click()

    test('who signs out in one is told so in the other, and what was typed there is saved afterwards', async () => {
      const person = await app.home.createMember('owner')
      const { id } = await api('POST', '/roles', { name: 'Left open', description: 'At first' })
      const visit = await app.signIn(`/roles/${id}/settings`, { person })
      const { page } = visit
      await page.getByLabel('Description').fill('Typed in the first tab')
      const other = await secondTab(page, '/')
      await other.getByRole('button', { name: /owner/ }).click()
      await other.getByRole('menuitem', { name: 'Sign out' }).click()
      await other.getByText('You are signed out').waitFor()

      await save(page)
      const dialog = page.getByRole('alertdialog', { name: 'Your session has ended' })
      await dialog.waitFor()
      expect(await api('GET', `/roles/${id}`)).toMatchObject({ description: 'At first' })
      await dialog.getByRole('button', { name: 'Not now' }).click()
      expect(await page.getByLabel('Description').inputValue()).toBe('Typed in the first tab')
      await save(page)
      await dialog.getByRole('button', { name: 'Sign in again' }).click()
      await page.waitForURL(/\/sign-in\//)
      await signInOn(page, person)
      await page.getByText('You typed this before; it is not saved yet.').waitFor()
      await save(page)
      await expect.poll(() => api('GET', `/roles/${id}`)).toMatchObject({ description: 'Typed in the first tab' })
      await visit.end()
    })

    test('who signs out in one cannot make anything in the other, and makes it later without typing it again', async () => {
      const person = await app.home.createMember('owner')
      const visit = await app.signIn('/roles/new', { person })
      const { page } = visit
      await page.getByLabel('Name').fill('Made later')
      await page.getByLabel('Description').fill('Typed once')
      const other = await secondTab(page, '/users')
      await other.getByRole('button', { name: /owner/ }).click()
      await other.getByRole('menuitem', { name: 'Sign out' }).click()
      await other.getByText('You are signed out').waitFor()
      await page.getByRole('button', { name: 'Create role' }).click()
      await page.getByRole('alertdialog').getByRole('button', { name: 'Sign in again' }).click()
      await page.waitForURL(/\/sign-in\//)
      await signInOn(page, person)
      await page.getByRole('button', { name: 'Create role' }).click()
      await page.getByRole('heading', { name: 'Made later' }).waitFor()
      await visit.end()
    })

    test('what one has saved is not overwritten by the other unseen: it shows both, and takes either', async () => {
      const { id } = await api('POST', '/roles', { name: 'Twice', description: 'At first' })
      const visit = await app.signIn(`/roles/${id}/settings`)
      const { page } = visit
      const other = await secondTab(page, `/roles/${id}/settings`)
      await page.getByLabel('Description').fill('Of the first tab')
      await other.getByLabel('Description').fill('Of the second tab')
      await save(page)
      await expect.poll(() => api('GET', `/roles/${id}`)).toMatchObject({ description: 'Of the first tab' })

      const answered = other.waitForResponse((response) => response.request().method() === 'PATCH')
      await save(other)
      expect((await answered).status()).toBe(412)
      const bar = other.getByRole('region', { name: 'Changes that are not saved' })
      await bar.getByText('Description is now: Of the first tab').waitFor()
      expect(await bar.locator('ins').allTextContents()).toEqual(['Of the second tab'])
      expect(await api('GET', `/roles/${id}`)).toMatchObject({ description: 'Of the first tab' })

      await bar.getByRole('button', { name: 'Save over it' }).click()
      await expect.poll(() => api('GET', `/roles/${id}`)).toMatchObject({ description: 'Of the second tab' })
      await page.getByLabel('Description').fill('Of the first tab again')
      await save(page)
      await page.getByText('Description is now: Of the second tab').waitFor()
      await page.getByRole('button', { name: 'Discard' }).click()
      expect(await page.getByLabel('Description').inputValue()).toBe('Of the second tab')
      await visit.end()
    })
  })
})
