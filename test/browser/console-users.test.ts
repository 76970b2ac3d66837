import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { clipboardOf } from '../support/clipboard.ts'
import { type ConsoleInChromium, startConsoleInChromium } from '../support/console-in-chromium.ts'

/** A list of users that is long, and what one of them is given. */

const many = 10_500

describe.skipIf(!chromium)('in Chromium', () => {
  let app: ConsoleInChromium
  beforeAll(async () => {
    app = await startConsoleInChromium()
    await app.home.issuer.sql(
      `INSERT INTO users (id, name, created_at) SELECT 'walker-' || n, 'Walker ' || n, now() - n * interval '1 hour'
       FROM generate_series(1, ${many}) n`,
    )
  })
  afterAll(() => app?.close())

  const api = async (method: string, path: string, body?: unknown) =>
    (await app.home.issuer.api(method, path, body)).body
  /** What the list shows, when it shows all that was asked for. */
  const listed = async (page: Page): Promise<string[]> => {
    await page.locator('table[aria-busy=false]').waitFor()
    return page
      .getByRole('rowheader')
      .allTextContents()
      .then((names) => names.map((name) => name.trim()))
  }
  const walkers = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, index) => `Walker ${from + index}`)
  const pageOf = (number: number) => walkers(20 * number - 19, 20 * number)

  describe('a long list', () => {
    test('is counted no further than needed, and turned to its end', async () => {
      const visit = await app.signIn('/users?search=Walker')
      const { page } = visit
      await page.getByText('more than 1,000 rows').waitFor()
      await page.getByText('Page 1 of more than 50').waitFor()
      await expect.poll(() => listed(page)).toEqual(pageOf(1))

      await visit.goTo('/users?search=Walker&page=50')
      await expect.poll(() => listed(page)).toEqual(pageOf(50))
      await page.getByRole('button', { name: 'Next page' }).click()
      await page.getByText('Page 51 of more than 50').waitFor()
      await expect.poll(() => listed(page)).toEqual(pageOf(51))
      await visit.goTo('/users?search=Walker&page=525')
      await expect.poll(() => listed(page)).toEqual(pageOf(525))
      // As many as fill it: nobody has counted whether there are more.
      await page.getByRole('button', { name: 'Next page' }).click()
      await page.getByText('There are no more.').waitFor()
      await expect.poll(() => page.getByRole('button', { name: 'Next page' }).isDisabled()).toBe(true)
      await visit.end()
    })

    test('is turned from row to row far from its start, and forth and back by the keyboard', async () => {
      const visit = await app.signIn('/users?search=Walker&page=300')
      const { page } = visit
      await expect.poll(() => listed(page)).toEqual(pageOf(300))
      const asked = page.waitForRequest(/[?&]after=walker-6000(&|$)/)
      await page.keyboard.press('n')
      await asked
      await expect.poll(() => listed(page)).toEqual(pageOf(301))
      const askedBack = page.waitForRequest(/[?&]before=walker-6001(&|$)/)
      await page.keyboard.press('p')
      await askedBack
      await expect.poll(() => listed(page)).toEqual(pageOf(300))

      // Faster than the rows come.
      await page.keyboard.press('n')
      await page.keyboard.press('n')
      await page.getByText('Page 302 of').waitFor()
      await expect.poll(() => listed(page)).toEqual(pageOf(302))
      // Loaded anew, and gone back to.
      await page.reload()
      await expect.poll(() => listed(page)).toEqual(pageOf(302))
      await page.goBack()
      await expect.poll(() => listed(page)).toEqual(pageOf(301))
      await visit.end()
    })

    test('goes on by its number when the row that it went on from is gone', async () => {
      const { id } = await api('POST', '/users', { name: 'Passing' })
      await app.home.issuer.sql(`UPDATE users SET created_at = now() - interval '4000.5 hours' WHERE id = $1`, [id])
      const owner = await app.home.createMember('owner')
      const visit = await app.signIn('/users', { person: owner })
      const { page } = visit
      const whole = (await api('GET', '/users?page_size=100&page=41')).map(({ id }: { id: string }) => id)
      const passing = 4_000 + whole.indexOf(id)
      const number = Math.ceil((passing + 1) / 20)
      await visit.goTo(`/users?page=${number}`)
      await page.getByRole('link', { name: 'Passing' }).waitFor()
      // So that it is the last of its page.
      const rest = 19 - (passing % 20)
      await app.home.issuer.sql(
        `INSERT INTO users (id, name) SELECT 'ahead-' || n, 'Ahead ' || n FROM generate_series(1, ${rest}) n`,
      )
      await page.reload()
      await expect.poll(async () => (await listed(page)).at(-1)).toBe('Passing')
      await page.keyboard.press('n')
      await page.getByText(`Page ${number + 1} of`).waitFor()
      const next = await listed(page)
      await api('DELETE', `/users/${id}`)
      await page.reload()
      // One more has moved up.
      await expect.poll(() => listed(page)).toEqual([...next.slice(1), expect.stringMatching(/^Walker/)])
      expect(await page.getByRole('alert').count()).toBe(0)
      await visit.end()
    })
  })

  test('somebody gets a personal access token, which is shown once and ends when it says', async () => {
    const user = await api('POST', '/users', { username: 'grace', name: 'Grace Hopper' })
    const visit = await app.signIn(`/users/${user.id}/tokens`)
    const { page } = visit
    await page.getByText('They have none.').waitFor()
    await page.getByRole('button', { name: 'New token' }).click()
    const making = page.getByRole('alertdialog', { name: 'New token' })
    await making.getByLabel('Name').fill('Nightly export')
    await making.getByLabel('Another: Permissions').fill('read:orders')
    await making.getByLabel('Ends').selectOption('30 days')
    await visit.expectUsable()
    await making.getByRole('button', { name: 'Make it' }).click()
    const made = page.getByRole('alertdialog', { name: 'The new token' })
    await made.getByText('This is the only time that it is shown.').waitFor()
    await visit.expectUsable()
    await made.getByRole('button', { name: 'Copy personal access token' }).click()
    await made.getByRole('button', { name: 'I have it' }).click()
    const value = await clipboardOf(page)
    expect(value).toMatch(/^pat_/)

    await page.getByText('read:orders').waitFor()
    const [token] = await api('GET', `/users/${user.id}/personal-access-tokens`)
    expect(token).toMatchObject({ name: 'Nightly export', scopes: ['read:orders'] })
    expect(Math.round((token.expiresAt - token.createdAt) / 86_400_000)).toBe(30)
    await page.reload()
    await page.getByText('Nightly export').waitFor()
    expect(await page.content()).not.toContain(value)

    // One that has all, for ever, by the keyboard.
    await page.getByRole('button', { name: 'New token' }).press('Enter')
    await making.getByLabel('Name').fill('For ever')
    await making.getByLabel('Ends').selectOption('Never')
    await page.keyboard.press('Control+s')
    await made.getByRole('button', { name: 'I have it' }).press('Enter')
    await page.getByText('everything that they may').waitFor()
    expect(await api('GET', `/users/${user.id}/personal-access-tokens`)).toContainEqual(
      expect.objectContaining({ name: 'For ever', scopes: null, expiresAt: null }),
    )
    await visit.end()
  })

  test('what was said in passing can be read again', async () => {
    const visit = await app.signIn('/users/walker-1')
    const { page } = visit
    const open = async () => {
      await page.getByRole('button', { name: /owner/ }).click()
      await page.getByRole('menuitem', { name: 'What was said' }).click()
    }
    const said = page.getByRole('dialog', { name: 'What was said' })
    await page.getByRole('button', { name: 'Copy the id walker-1' }).waitFor()
    await open()
    await said.getByText('Nothing yet.').waitFor()
    await visit.expectUsable()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Copy the id walker-1' }).click()
    await page.getByRole('status').getByText('Copied.').waitFor()
    await page.locator('[name=name]').fill('Walker, the first')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('heading', { name: 'Walker, the first' }).waitFor()
    await open()
    await expect
      .poll(() => said.getByRole('listitem').allTextContents())
      .toEqual([expect.stringContaining('Saved.'), expect.stringContaining('Copied.')])
    await visit.end()
  })
})
