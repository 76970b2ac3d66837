import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chromium } from '../support/chromium.ts'
import { type ConsoleExample, createConsoleExample } from '../support/console-example.ts'
import { type ConsoleWithRelay, startConsoleWithRelay } from '../support/console-with-relay.ts'

/** What holds of every page that can be reached: from the navigation, by its parts and its rows. */

describe.skipIf(!chromium)('in Chromium', () => {
  let app: ConsoleWithRelay
  let example: ConsoleExample
  beforeAll(async () => {
    app = await startConsoleWithRelay()
    example = await createConsoleExample(app)
  })
  afterAll(async () => {
    await example?.close()
    await app?.close()
  })

  test('every page fits 320 pixels, has a title and one heading, and says nothing wrong', async () => {
    const visit = await app.signIn('/', { viewport: { width: 320, height: 640 }, reducedMotion: 'reduce' })
    const { page } = visit
    /** One row of each list, and every part of what it leads to. */
    const links = (selector: string) =>
      page.evaluate<string[]>(
        `[...document.querySelectorAll(${JSON.stringify(selector)})].map(({ pathname, search }) => pathname + search)`,
      )
    await page.locator('h1').waitFor()
    const found = await links('nav[aria-label=Pages] a')
    const seen = new Set<string>()
    for (let path = found.shift(); path !== undefined; path = found.shift()) {
      if (seen.has(path)) continue
      seen.add(path)
      // As a link of the page does it.
      await page.evaluate(`history.pushState({}, '', ${JSON.stringify(path)})`)
      await page.locator('h1').waitFor()
      await expect.poll(() => page.getByRole('status', { name: 'Loading' }).count()).toBe(0)
      expect([path, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([path, 320])
      expect([path, await page.locator('h1').count(), await page.title()]).toEqual([
        ...[path, 1, expect.stringMatching(/^.+ · Console$/)],
      ])
      const [row] = await links('[data-row]')
      found.push(...(await links('nav[aria-label=Parts] a')), ...(row ? [row] : []))
    }
    expect(seen.size).toBeGreaterThan(45)
    await visit.end()
  })
})
