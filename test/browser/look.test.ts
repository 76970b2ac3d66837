import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Locale } from '../../issuer/pages/index.ts'
import { findAsset } from '../../issuer/pages/index.ts'
import { everyPage } from '../issuer/pages/every-page.ts'
import { chromium, startChromium } from '../support/chromium.ts'
import { accessibilityProblems } from '../support/pages-in-chromium.ts'

/** Each kind of page as it is laid out: for people who see little, who use a telephone, or the keyboard alone. */

const kinds = [
  ...['signIn', 'signIn every way', 'signIn by code', 'signIn after reset', 'signIn invalid_credentials'],
  ...['code email', 'code phone code_wrong', 'code email for accounts', 'no account email'],
  ...['address register email,phone', 'address reset email address_missing', 'address profile phone'],
  ...['details register', 'details register issues', 'details profile username taken', 'details expired'],
  ...['passkey offer', 'passkey offer second failed'],
  ...['blocked user_suspended another', 'blocked registration_closed back'],
  ...['device', 'device from link', 'device wrong', 'device consent'],
  ...['selectAccount', 'consent', 'finished', 'error expired', 'logout'],
]
const origin = 'https://id.example.test'

describe.skipIf(!chromium)('in Chromium', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await startChromium()
  })
  afterAll(() => browser?.close())

  const open = async (
    options: Parameters<Browser['newContext']>[0],
    { locale = 'en', text }: { locale?: Locale; text?: string } = {},
  ) => {
    const context = await browser.newContext(options)
    const pages = everyPage(locale, text)
    await context.route('**', (route) => {
      const { pathname } = new URL(route.request().url())
      const asset = findAsset(pathname)
      if (asset) return route.fulfill({ contentType: asset.type, body: asset.content })
      const page = pages[decodeURIComponent(pathname.slice(1))]
      return page
        ? route.fulfill({ contentType: 'text/html', headers: page.headers, body: page.content })
        : route.abort()
    })
    const page = await context.newPage()
    return {
      context,
      page,
      show: async (name: string) => {
        expect(pages, name).toHaveProperty([name])
        await page.goto(`${origin}/${encodeURIComponent(name)}`)
      },
    }
  }

  test('what would be a problem is found', async () => {
    const { context, page, show } = await open({})
    await show('code email')
    await page.evaluate(`document.querySelector('label').remove()`)
    expect(await accessibilityProblems(page)).toContainEqual(expect.stringMatching(/^label: <input id="code"/))
    await context.close()
  })

  describe.each(['light', 'dark'] as const)('whoever sees little can use (%s)', (colorScheme) => {
    let opened: Awaited<ReturnType<typeof open>>
    beforeAll(async () => {
      opened = await open({ colorScheme, viewport: { width: 1280, height: 900 } })
    })
    afterAll(() => opened?.context.close())

    // One by one: a busy machine takes a minute for all of them.
    test.each(kinds)('%s', async (name) => {
      await opened.show(name)
      expect(await accessibilityProblems(opened.page)).toEqual([])
    })
  })

  test.each([
    ['a small telephone', { viewport: { width: 320, height: 640 } }],
    ['a magnification of 200 %', { viewport: { width: 640, height: 360 }, deviceScaleFactor: 2 }],
  ] as const)('nothing is cut off by %s', async (_name, options) => {
    const text = 'Donaudampfschifffahrtsgesellschaft@einkaufsgenossenschaftsverwaltung.example'
    const { context, page, show } = await open(options, { locale: 'de', text })
    for (const name of kinds) {
      await show(name)
      expect(await page.evaluate('document.documentElement.scrollWidth'), name).toBe(options.viewport.width)
      const outside = await page.evaluate<string[]>(
        `[...document.querySelectorAll('main *:not(.unseen)')].filter((element) => {
          const { left, right, width } = element.getBoundingClientRect()
          return width > 0 && (left < 0 || right > innerWidth)
        }).map((element) => element.outerHTML)`,
      )
      expect(outside, name).toEqual([])
    }
    await context.close()
  })

  test('the Tab key reaches everything that can be used, in the order in which it is read', async () => {
    const { context, page, show } = await open({ viewport: { width: 800, height: 900 } })
    for (const name of kinds.filter((kind) => !kind.startsWith('signIn'))) {
      await show(name)
      const expected = await page.evaluate<string[]>(
        `[...document.querySelectorAll('main a[href], main button, main input:not([type=hidden]):not([tabindex])')]
          .map((element) => element.outerHTML)`,
      )
      const focused = () => page.evaluate<string>('document.activeElement.outerHTML')
      await page.evaluate(
        `document.querySelector('main :is(a[href], button, input:not([type=hidden], [tabindex]))').focus()`,
      )
      const reached = [await focused()]
      while (reached.length < expected.length) {
        await page.keyboard.press('Tab')
        reached.push(await focused())
      }
      expect(reached, name).toEqual(expected)
    }
    await context.close()
  })

  test('what can be touched is large enough', async () => {
    const { context, page, show } = await open({ viewport: { width: 320, height: 640 } })
    for (const name of kinds) {
      await show(name)
      const small = await page.evaluate<string[]>(
        `[...document.querySelectorAll('main button:not([hidden]), main .button, main .choice, main .field input')]
          .filter((element) => element.getBoundingClientRect().height < 44).map((element) => element.outerHTML)`,
      )
      expect(small, name).toEqual([])
    }
    await context.close()
  })
})
