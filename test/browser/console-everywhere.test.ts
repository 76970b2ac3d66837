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

  /** What hides a part of itself, unless it says so by an ellipsis. Fields are read by moving in them. */
  const cutOff = `[...document.querySelectorAll('body :not(input)')]
    .filter((element) => {
      const { overflowX, textOverflow } = getComputedStyle(element)
      return ['hidden', 'clip'].includes(overflowX) && textOverflow !== 'ellipsis' &&
        element.clientWidth > 1 && element.scrollWidth > element.clientWidth + 1
    })
    .map(({ tagName, className }) => tagName + ' ' + className)`

  test('every page fits 320 pixels and a window at 200 %, has a title and one heading, and says nothing wrong', async () => {
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
      // At 200 % a window of 1280 pixels has half of them.
      for (const width of [640, 320]) {
        await page.setViewportSize({ width, height: 640 })
        expect([path, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([path, width])
        expect([path, width, await page.evaluate<string[]>(cutOff)]).toEqual([path, width, []])
      }
      expect([path, await page.locator('h1').count(), await page.title()]).toEqual([
        ...[path, 1, expect.stringMatching(/^.+ · Console$/)],
      ])
      const [row] = await links('[data-row]')
      found.push(...(await links('nav[aria-label=Parts] a')), ...(row ? [row] : []))
    }
    expect(seen.size).toBeGreaterThan(45)
    await visit.end()
  })

  /** Of what has the focus: what it is, whether one sees that it has it, and whether anything of it is seen at all. */
  const focused = `(() => {
    const element = document.activeElement
    if (element === document.body) return undefined
    const { left, top, right, bottom } = element.getBoundingClientRect()
    const inset = (from, to, share, most) => Math.min(Math.max(from + (to - from) * share, 0), most - 1)
    const shares = [0.02, 0.25, 0.5, 0.75, 0.98]
    const isSeen = shares.some((x) => shares.some((y) => {
      const hit = document.elementFromPoint(inset(left, right, x, innerWidth), inset(top, bottom, y, innerHeight))
      return bottom > 0 && top < innerHeight && (element.contains(hit) || hit?.closest('label')?.control === element)
    }))
    const isMarked = ['', '::before', '::after'].some((part) => {
      const { outlineStyle, outlineWidth } = getComputedStyle(element, part)
      return outlineStyle !== 'none' && parseFloat(outlineWidth) > 0
    })
    return [element.tagName, element.ariaLabel ?? element.textContent.slice(0, 40), isSeen, isMarked]
  })()`

  test('at 200 % the keyboard leads through a page forth and back, and what has the focus is always seen', async () => {
    const visit = await app.signIn('/', { viewport: { width: 640, height: 430 }, deviceScaleFactor: 2 })
    const { page } = visit
    const { user, failing, role } = example.ids
    const edited = `/users/${user}`
    for (const path of ['/users', edited, `/hooks/${failing}/lanes`, `/roles/${role}`, '/sign-in-settings', '/live']) {
      await visit.goTo(path)
      await page.locator('h1').waitFor()
      await expect.poll(() => page.getByRole('status', { name: 'Loading' }).count()).toBe(0)
      // With the bar in which changes are collected.
      if (path === edited) await page.locator('[name=name]').fill('Augusta Ada King')
      for (const key of ['Tab', 'Shift+Tab']) {
        const passed = []
        await page.evaluate('document.activeElement.blur()')
        for (;;) {
          await page.keyboard.press(key)
          const now = await page.evaluate<[string, string, boolean, boolean] | undefined>(focused)
          if (!now || passed.length > 200) break
          passed.push(now)
        }
        expect(passed.length, `${path} ${key}`).toBeGreaterThan(8)
        expect(passed.length, `${path} ${key}`).toBeLessThan(200)
        expect([path, key, passed.filter(([, , isSeen, isMarked]) => !isSeen || !isMarked)]).toEqual([path, key, []])
      }
      expect([path, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([path, 640])
    }
    await visit.end()
  })
})
